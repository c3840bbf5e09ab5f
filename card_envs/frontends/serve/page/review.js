// What the moves of a seat cost: a judge is asked about every position in which it had a choice.

import { drawCurve, markCurve, pointedAt } from "./curve.js";
import { $, count, element } from "./dom.js";
import { capital } from "./words.js";

const SURE = 2; // standard errors by which a cost must exceed 0 for a move to count as worse
const MOST = 5; // of the costliest moves are listed

let costs = new Map(); // of moves, by the number of moves before them
let numMoves = 0; // of the game
let write = null; // returns the nodes of a move

/** Forget what was judged. */
export function clearReview() {
  costs = new Map();
  showSummary("", "");
  showCosts();
}

/** Forget what was judged of the moves from number `first` on. */
export function takeBack(first) {
  for (const at of [...costs.keys()]) if (at >= first) costs.delete(at);
  showSummary("", "");
  showCosts();
}

/** Return what is known of the move that was played after `at` moves: `played`, `best`, `cost` and `error`. */
export const costOf = (at) => costs.get(at);

/** Return the same in words. */
export function judgement(at, words) {
  const one = costs.get(at);
  const best = words(one.best);
  const played = capital(words(one.played));
  if (one.cost === null) return `${played}: the judge has no opinion.`;
  if (one.best === one.played) return `${played} was the judge's choice.`;
  if (one.cost <= 0) return `${played} was as good as ${best}.`; // also where that can still be played
  return `${played} cost ${one.cost.toFixed(1)} ± ${one.error.toFixed(1)}; better: ${best}.`;
}

/** Show which position is on the table, of a game of that many moves by now. */
export function markReview(turn, total) {
  if (total !== numMoves) {
    numMoves = total;
    showCosts();
  }
  markCurve($("curve"), turn);
}

/** Call `goTo` with the number of moves before one that is chosen from the costliest, or on the curve. */
export function onCost(goTo) {
  $("curve").addEventListener("click", (event) => goTo(pointedAt($("curve"), event)));
  $("costliest").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) goTo(Number(button.dataset.at));
  });
}

/**
 * Judge the moves of a seat, one after the other, and show what they cost: in the list of moves, as a curve, and the
 * costliest ones by themselves.
 *
 * `positionAt(at)` gives a position, `ask(view, move, at)` the judge's `best`, and the `cost` and `error` of the move,
 * null where it has no opinion; `goesOn()` says whether it is still wanted; `written(move, at)` returns the nodes of one.
 */
export async function review({ moves, judge, unit, positionAt, ask, goesOn, written }) {
  clearReview();
  numMoves = moves.length;
  write = written;
  for (let at = 0; at < moves.length; at++) {
    const { view } = await positionAt(at);
    if (!goesOn()) return;
    if (view.to_move !== view.seat || view.legal.length < 2) continue;
    const { best, cost, error } = await ask(view, moves[at], at);
    if (!goesOn()) return;
    costs.set(at, { played: moves[at], best, cost, error });
    showCosts();
    showSummary(`${judge} judges: move ${at + 1} of ${moves.length} …`, "");
  }
  showSummary(...summary(judge, unit));
}

/** Return whether a move clearly cost something. */
export const isWorse = ({ cost, error }) => cost > SURE * error; // not if it is null

/** Return what all moves cost, and how many of them did for certain. */
function summary(judge, unit) {
  const all = [...costs.values()].filter(({ cost }) => cost !== null);
  if (!all.length) return ["There was no choice to judge.", ""];
  const total = all.reduce((sum, { cost }) => sum + cost, 0);
  const [name, remark = ""] = unit.split(/ \(|\)/);
  const worse = all.filter(isWorse).map(({ cost }) => cost);
  const mean = worse.reduce((sum, cost) => sum + cost, 0) / worse.length;
  const by = worse.length ? `, by ${mean.toFixed(1)} ${name} on average and ${Math.max(...worse).toFixed(1)} at most` : "";
  const error = Math.hypot(...all.map((one) => one.error));
  return [
    `Judged by ${judge}: ${worse.length || "none"} of ${count(all.length, "choice")} clearly worse than its own${by}.`,
    `Clearly: by more than ${SURE} errors, as 1 of 44 equal moves is by chance. Each choice is compared with the best from there on, so that all of them (${total.toFixed(1)} ± ${error.toFixed(1)} ${name}) may cost more than there is to win.${remark && ` ${capital(remark)}.`}`,
  ];
}

function showSummary(text, chance) {
  $("judged").textContent = text;
  $("chance").textContent = chance;
  $("costs").hidden = !chance;
}

/** Show the costs wherever they are shown. */
function showCosts() {
  const all = [...costs].sort(([one], [other]) => one - other);
  for (const cost of $("log").querySelectorAll(".cost")) cost.remove();
  for (const button of $("log").querySelectorAll(".worse")) button.classList.remove("worse");
  const most = Math.max(1e-9, ...all.map(([, { cost }]) => cost ?? 0));
  for (const [at, one] of all) {
    const button = $("log").children[at]?.firstChild;
    button?.classList.toggle("worse", isWorse(one));
    button?.append(figure(one, most));
  }
  const worst = all.filter(([, one]) => isWorse(one)).sort(([, one], [, other]) => other.cost - one.cost).slice(0, MOST);
  $("costliest").replaceChildren(...worst.map(([at, one]) => costly(at, one, most)));
  drawCurve($("curve"), all.map(([at, one]) => [at, one.cost ?? 0, isWorse(one)]), numMoves);
}

/** Return a cost with a bar. */
function figure({ played, best, cost }, most) {
  const text = cost === null ? "?" : cost > 0 ? `−${cost.toFixed(1)}` : best === played ? "best" : "as good";
  const made = element("span", { className: "cost" }, text);
  made.style.setProperty("--share", `${Math.round(100 * Math.max(0, (cost ?? 0) / most))}%`);
  return made;
}

/** Return an entry of the costliest moves. */
function costly(at, one, most) {
  const words = [`${at + 1}. `, ...write(one.played, at), ", better ", ...write(one.best, at), " ", figure(one, most)];
  const button = element("button", { type: "button" }, ...words);
  button.dataset.at = at;
  return element("li", {}, button);
}
