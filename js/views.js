// What all games' views and states have in common. A game here is a module of `games/`.

/** Return the seat to move; null if no decision is due. */
export const toMove = (state) => (state.needs_deal ? null : state.seat);

/** Return the view of a seat, ready for JSON; `legal` has the texts of the legal moves of the seat to move. */
export function viewOf(game, state, seat, legal) {
  return {
    version: 1,
    game: game.NAME,
    options: game.optionsOf(state),
    ...game.view(state, seat),
    to_move: toMove(state),
    legal: toMove(state) === seat ? legal : [],
  };
}

/** Return what a view asks its seat, in words for people; `questions` are those that go by the legal moves alone. */
export function questionOf(game, questions, view) {
  if (!view.legal.length) return "";
  const fits = ([, moves]) => !moves.length || moves.some((move) => view.legal.includes(move));
  return game.question?.(view) || (questions.find(fits)?.[0] ?? "Your turn.");
}

/** Return what legal moves of a view come to, by their text. */
export const notesOf = (game, view) => (view.legal.length && game.moveNotes?.(view)) || {};

/** Return the card that a legal move of a view takes, where all see it and the move does not say it; else "". */
export const cardOf = (game, view, move) => game.movedCard?.(view, move) ?? "";

/** Return the bytes of a State with these options before its first deal; `read` is of `reader(layout)`. */
export function newState(game, { size }, read, options = {}) {
  const bytes = new Uint8Array(size);
  const state = read(bytes);
  game.setOptions(state, options);
  state.over = state.needs_deal = true;
  return bytes;
}
