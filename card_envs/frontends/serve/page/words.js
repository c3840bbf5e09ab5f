// Moves in words: the game says them as orders, "play the queen of hearts"; here they become titles and sentences.

import { element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SUIT_NAMES = { C: "clubs", D: "diamonds", H: "hearts", S: "spades" };
const RANK_NAMES = { A: "ace", T: "10", J: "jack", Q: "queen", K: "king" };
const JOKERS = { BB: "Big Blooper", LB: "Little Blooper" };
const VERB = /^[a-z]{3,}(?![^ ])/; // what words begin with; no code of a move does

const isCard = (text) => /^[A2-9TJQK][CDHS]$/.test(text);

/** Return the name of a card; undefined for anything else. */
export function cardName(text) {
  return isCard(text) ? `${RANK_NAMES[text[0]] ?? text[0]} of ${SUIT_NAMES[text[1]]}` : JOKERS[text];
}

export const orderOf = (game, text) => game.words[text] ?? text;

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Return an order as what somebody did: "left plays the queen of hearts"; "left: 7" if it has no verb. */
export function did(name, order) {
  const [verb] = VERB.exec(order) ?? [];
  if (!verb) return `${name}: ${order}`;
  const third = name === "you" ? verb : verb + (/(?:s|sh|ch|x|o)$/.test(verb) ? "es" : "s");
  return `${name} ${third}${order.slice(verb.length)}`;
}

/** Return a move as it is written, as nodes: cards with their suits. */
export function dressed(text) {
  if (!isCard(text)) return [text];
  const [rank, suit] = text;
  const pip = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["class", "suit"], ["role", "img"], ["aria-label", SUIT_NAMES[suit]]]) pip.setAttribute(name, value);
  pip.append(document.createElementNS(SVG, "use"));
  pip.firstChild.setAttribute("href", `#suit-${suit}`);
  return [element("span", { className: "DH".includes(suit) ? "red" : "" }, rank === "T" ? "10" : rank, pip)];
}

/** Return whether the words of a move say its code anyway, as those of a bid do. */
export const saysCode = (words, text) => words.toLowerCase().split(/[^a-z0-9]+/).includes(text.toLowerCase());

/** Return what somebody did as nodes, with the code of the move beside it. */
export function doneBy(name, game, text) {
  const order = orderOf(game, text);
  const code = saysCode(order, text) ? [] : [" ", element("span", { className: "code", ariaHidden: "true" }, ...dressed(text))];
  return [did(name, order), ...code];
}
