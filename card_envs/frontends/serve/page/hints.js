// What an adviser thinks of the moves, in words.

import { count } from "./dom.js";
import { isWorse } from "./review.js";

const LEAST = 0.5; // of the game's unit: estimates that differ by less are about as good
const PRICED = 3; // moves that are priced beside the best one, where the adviser says nothing but how likely they are

/** Return what a game's margins count, without remarks: "points". */
export const unitOf = (game) => game.margin_unit.replace(/ \(.*/, "");

export const counted = (game, number) => count(number, singular(unitOf(game)));

const singular = (unit) => (unit.endsWith("s") ? unit.slice(0, -1) : unit);

/** Return the moves that a judge should price: the likeliest ones, if the adviser has no estimates. */
export function unpriced([best, ...others]) {
  return best.margin === null ? others.slice(0, PRICED) : [];
}

/** Return moves in the adviser's order, but those with a price the cheapest first. */
export function ranked([best, ...others], prices) {
  const cost = ({ move }) => prices.get(move)?.cost ?? Number.MAX_VALUE;
  return [best, ...others.sort((one, other) => cost(one) - cost(other))];
}

/**
 * Return why a move is not the best one, in short and at length; both empty if that is not known.
 *
 * `price` has the `cost` and `error` of the move, if a judge was asked. What an adviser gave up early, or did not try,
 * is less good in its eyes, and its figures are too rough to be shown.
 */
export function worth(game, one, best, price) {
  if (one === best) return ["best", "the best"];
  if (price) {
    const { cost, error } = price;
    if (cost < LEAST || !isWorse(price)) return ["as good", "about as good"];
    return [`−${cost.toFixed(1)}`, `costs ${cost.toFixed(1)} ${unitOf(game)} ± ${error.toFixed(1)}`];
  }
  if (best.margin === null) {
    const percent = Math.round(100 * one.probability);
    return percent ? [`${percent} %`, `${percent} % likely`] : ["", ""];
  }
  if (one.dropped || !one.worlds) return ["", ""];
  if (one.difference > -LEAST) return ["as good", "about as good"]; // a plus may be chance
  const cost = Math.round(-one.difference);
  return [`−${cost}`, `costs about ${counted(game, cost)}`];
}

/** What is written on moves by a hint, and what it means. */
export const hintLegend = (unit) => [
  ["best", "what the adviser would play; moves without a word look less good to it"],
  ["as good", "about as good, as far as the adviser can tell"],
  ["−2", `costs about 2 ${unit} compared with the best`],
  ["62 %", "how likely an adviser that does not search would play it"],
];
