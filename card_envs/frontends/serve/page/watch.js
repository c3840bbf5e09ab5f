// A table that is watched: what all seats see, who plays, and the moves. Hands come once the game is over.

import { $, element } from "./dom.js";

const WAIT = 20; // seconds for a move, before asking again

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

/** Return who sits where. */
export function playersOf({ players }, levels) {
  const named = (player) => (player === null ? "a person" : levels.find((one) => one.player === player)?.name ?? player);
  return `You watch: ${players.map((player, seat) => `${seatName(seat)} is ${named(player)}`).join(", ")}.`;
}

/** Say who sits where at a table that shows nothing before its end, where the picture would be. */
export function showPlayers(table, levels) {
  $("picture").replaceChildren(element("p", {}, `${playersOf(table, levels)} This table shows nothing before its end.`));
}
