// The unfinished game, which the browser keeps for the next visit: the token of its seat.

// In localStorage, which all pages of an origin share: the name ends with this one's path.
const KEPT = `card_envs seat ${location.pathname}`;

/** Return what `work` does with localStorage, undefined if that fails: it may be full, or forbidden by the browser. */
function tried(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

export const keptToken = () => tried(() => localStorage.getItem(KEPT)) ?? "";
export const keep = (token) => tried(() => localStorage.setItem(KEPT, token));

/** Forget the game of a token. */
export function forget(token) {
  if (keptToken() === token) tried(() => localStorage.removeItem(KEPT));
}
