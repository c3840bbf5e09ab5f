// The list of moves: the newest in sight; choosing one shows the position after it.

import { $, element } from "./dom.js";

/** Return how many moves are listed. */
export const listed = () => $("log").children.length;

/** List moves in the place of those from number `first` on; `write` returns what stands in the entry of one. */
export function list(first, moves, write) {
  while (listed() > first) $("log").lastChild.remove();
  for (const move of moves) {
    const button = element("button", { type: "button" }, ...write(move));
    button.dataset.move = move.move;
    $("log").append(element("li", {}, button));
  }
}

/** Mark the move that led to a position, scroll to it, and let the Tab key find it. */
export function markMove(turn) {
  for (const button of $("log").querySelectorAll("button")) {
    button.removeAttribute("aria-current");
    button.tabIndex = -1;
  }
  const button = ($("log").children[turn - 1] ?? $("log").firstChild)?.firstChild;
  if (!button) return;
  button.tabIndex = 0;
  if (turn) button.setAttribute("aria-current", "true");
  const { offsetTop: top, offsetHeight: height } = button.parentNode;
  $("log").scrollTop = Math.min(Math.max($("log").scrollTop, top + height - $("log").clientHeight), top);
}

/** Call `goTo` with the number of moves up to one that is clicked on, or that the arrow keys lead to. */
export function onMove(goTo) {
  const numberOf = (button) => [...$("log").children].indexOf(button.parentNode) + 1;
  $("log").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) goTo(numberOf(button));
  });
  $("log").addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1, Home: -listed(), End: listed() }[event.key];
    const button = event.target.closest("button");
    if (!step || !button) return;
    event.preventDefault();
    const wanted = Math.min(Math.max(numberOf(button) + step, 1), listed());
    $("log").children[wanted - 1].firstChild.focus({ preventScroll: true });
    goTo(wanted);
  });
}
