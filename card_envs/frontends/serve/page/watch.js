// A table that is watched: who plays, the moves, and the scores. Views come once the game is over.

import { $, element } from "./dom.js";

const WAIT = 20; // seconds for a move, before asking again

const SHOWN = "the moves and the scores, and once the game is over all cards";

export const seatName = (seat) => `seat ${seat + 1}`;

/**
 * Follow a table until its game is over: `ask(query)` asks for what watchers may see, `show(found)` shows it.
 *
 * `goesOn()` says whether it is still wanted. Returns whether the end was seen.
 */
export async function watch(ask, show, goesOn) {
  let found = await ask({ since: 0 });
  while (goesOn()) {
    if (found.outcome?.over) return true;
    show(found);
    found = await ask({ wait: WAIT, since: found.turn ?? 0 });
  }
  return false;
}

/** Show who sits where, and the scores, where the picture would be. */
export function showPlayers({ players, outcome }, levels) {
  const named = (player) => (player === null ? "a person" : levels.find((one) => one.player === player)?.name ?? player);
  const rows = players.map((player, seat) => {
    const score = outcome ? String(outcome.scores[seat]).replace("-", "−") : "";
    return element("tr", {}, ...[seatName(seat), named(player), score].map((text, column) => element(column ? "td" : "th", { scope: column ? undefined : "row" }, text)));
  });
  const caption = element("caption", {}, outcome ? `You watch: ${SHOWN}.` : "You watch: this table shows nothing before its end.");
  $("picture").replaceChildren(element("table", {}, caption, element("tbody", {}, ...rows)));
}
