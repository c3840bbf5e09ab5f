// What the moves of a seat cost: a judge is asked about every position in which it had a choice.

import { $, count, element } from "./dom.js";

const SURE = 2; // standard errors by which a cost must exceed 0 for a move to count as worse

let costs = new Map(); // of moves, by the number of moves before them

/** Forget what was judged. */
export function clearReview() {
  costs = new Map();
  $("judged").textContent = "";
  for (const cost of $("log").querySelectorAll(".cost")) {
    cost.parentNode.classList.remove("worse");
    cost.remove();
  }
}

/** Forget what was judged of the moves from number `first` on. */
export function takeBack(first) {
  for (const at of [...costs.keys()]) if (at >= first) costs.delete(at);
  $("judged").textContent = "";
  showCosts();
}

/** Return what is known of the move before a position, in words; empty if that is nothing. */
export function judgement(turn, words) {
  const one = costs.get(turn - 1);
  if (!one) return "";
  const [played, best] = [words(one.played), words(one.best)];
  if (one.cost === null) return `${played}: the judge has no opinion.`;
  if (one.best === one.played) return `${played} was the judge's choice.`;
  if (one.cost <= 0) return `${played} was as good as ${best}.`; // also where that can still be played
  return `${played} instead of ${best} cost ${one.cost.toFixed(1)} ± ${one.error.toFixed(1)}.`;
}

/**
 * Judge the moves of a seat, one after the other, and show the costs in the list of moves.
 *
 * `positionAt(at)` gives a position, `ask(view, move, at)` the judge's `best`, and the `cost` and `error` of the move,
 * null where it has no opinion; `goesOn()` says whether it is still wanted.
 */
export async function review({ moves, judge, unit, positionAt, ask, goesOn }) {
  clearReview();
  for (let at = 0; at < moves.length; at++) {
    const { view } = await positionAt(at);
    if (!goesOn()) return;
    if (view.to_move !== view.seat || view.legal.length < 2) continue;
    const { best, cost, error } = await ask(view, moves[at], at);
    if (!goesOn()) return;
    costs.set(at, { played: moves[at], best, cost, error });
    showCosts();
    $("judged").textContent = `${judge} judges: move ${at + 1} of ${moves.length} …`;
  }
  $("judged").textContent = summary(judge, unit);
}

const isWorse = ({ cost, error }) => cost > SURE * error; // not if it is null

function summary(judge, unit) {
  const all = [...costs.values()].filter(({ cost }) => cost !== null);
  if (!all.length) return "There was no choice to judge.";
  const total = all.reduce((sum, { cost }) => sum + cost, 0);
  const fine = all.filter((one) => !isWorse(one)).length;
  const error = Math.hypot(...all.map((one) => one.error));
  return `Judged by ${judge}: ${count(all.length, "choice")} cost ${total.toFixed(1)} ± ${error.toFixed(1)} ${unit}; `
    + `${all.length - fine} clearly, by more than ${SURE} errors, as 1 of 44 equal moves does by chance.`;
}

/** Put a bar and the cost beside each judged move. */
function showCosts() {
  const most = Math.max(1e-9, ...[...costs.values()].map(({ cost }) => cost ?? 0));
  for (const [at, one] of costs) {
    const button = $("log").children[at]?.firstChild;
    if (!button) continue;
    button.querySelector(".cost")?.remove();
    button.classList.toggle("worse", isWorse(one));
    const text = one.cost === null ? "?" : one.cost > 0 ? `−${one.cost.toFixed(1)}` : one.best === one.played ? "best" : "as good";
    const bar = element("span", { className: "cost" }, text);
    bar.style.setProperty("--share", `${Math.round(100 * Math.max(0, (one.cost ?? 0) / most))}%`);
    button.append(bar);
  }
}
