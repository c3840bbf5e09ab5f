// The unfinished game, which the browser keeps for the next visit: the token of its seat.

// In localStorage, which all pages of an origin share: the name ends with this one's path.
const KEPT = `card_envs seat ${location.pathname}`;

export const keptToken = () => localStorage.getItem(KEPT) ?? "";
export const keep = (token) => localStorage.setItem(KEPT, token);

/** Forget the game of a token. */
export function forget(token) {
  if (keptToken() === token) localStorage.removeItem(KEPT);
}
