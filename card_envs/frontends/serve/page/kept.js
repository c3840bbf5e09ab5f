// What the browser keeps for the next visit, where it may: the token of the unfinished game, and games won and lost.

// In localStorage, which all pages of an origin share: the names end with this one's path.
const nameOf = (what) => `card_envs ${what} ${location.pathname}`;

/** Return what `work` does with localStorage, undefined if that fails: it may be full, or forbidden by the browser. */
function tried(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const read = (what) => tried(() => localStorage.getItem(nameOf(what)));
const write = (what, text) => tried(() => localStorage.setItem(nameOf(what), text));

export const keptToken = () => read("seat") ?? "";
export const keep = (token) => write("seat", token);

/** Forget the game of a token. */
export function forget(token) {
  if (keptToken() === token) tried(() => localStorage.removeItem(nameOf("seat")));
}

/** Keep the links of the newest table. */
export const keepLinks = (links) => write("links", JSON.stringify(links));
export const keptLinks = () => tried(() => JSON.parse(read("links")));

/** Return whether this is asked about something for the first time in this browser. */
export function once(what) {
  const isNew = read(what) === null;
  if (isNew) write(what, "told");
  return isNew;
}

/** Keep the number of the newest table's deal. */
export const keepNumber = (of, number) => write("deal", JSON.stringify({ of, number }));

/** Return the number of the deal at the table of a token; undefined if it is not known. */
export const numberOf = (token) => tried(() => JSON.parse(read("deal")).of === token && JSON.parse(read("deal")).number);

/** Return whether a switch is on: it is off at first. */
export const keptSwitch = (what) => read(`switch ${what}`) === "on";
export const keepSwitch = (what, on) => write(`switch ${what}`, on ? "on" : "off");

/** Return how many games were won, lost and drawn: `{won, lost, drawn}`. */
export function tally(game) {
  const { won = 0, lost = 0, drawn = 0 } = tried(() => JSON.parse(read(`tally of ${game}`))) ?? {};
  return { won, lost, drawn };
}

/** Count a game as `won`, `lost` or `drawn`. */
export function countGame(game, how) {
  const known = tally(game);
  write(`tally of ${game}`, JSON.stringify({ ...known, [how]: known[how] + 1 }));
}
