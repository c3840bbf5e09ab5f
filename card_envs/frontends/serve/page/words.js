// Moves in words: the game says them as orders, "play the queen of hearts"; here they become titles and sentences.

import { element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SUIT_NAMES = { C: "clubs", D: "diamonds", H: "hearts", S: "spades" };
const RANK_NAMES = { A: "ace", T: "10", J: "jack", Q: "queen", K: "king" };
const JOKERS = { BB: "Big Blooper", LB: "Little Blooper" };
const VERB = /^[a-z]{3,}(?![^ ])/; // what words begin with; no code of a move does
const NAME = "(?:[2-9]|10|ace|jack|queen|king) of (?:clubs|diamonds|hearts|spades)";
const VERB_OF_A_CARD = new RegExp(`^[a-z]+ the (?=(?:[a-z]+ )?${NAME})`);

const isCard = (text) => /^[A2-9TJQK][CDHS]$/.test(text);

/** Return the name of a card; undefined for anything else. */
export function cardName(text) {
  return isCard(text) ? `${RANK_NAMES[text[0]] ?? text[0]} of ${SUIT_NAMES[text[1]]}` : JOKERS[text];
}

const CODES = new Map([..."A23456789TJQK"].flatMap((rank) => [..."CDHS"].map((suit) => [cardName(rank + suit), rank + suit])));

/** Return the words of a move, with the name of the card that it takes, if that is known and not said by them anyway. */
export function orderOf(game, text, card) {
  const order = game.words[text] ?? text;
  const name = cardName(card);
  if (!name || order.includes(name)) return order;
  return order.replace(/\b(a )?card\b/, (_, article) => (article ? `the ${name}` : name));
}

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Return an order as what somebody did: "left plays the queen of hearts"; "left: 7" if it has no verb. */
export function did(name, order) {
  const [verb] = VERB.exec(order) ?? [];
  if (!verb) return `${name}: ${order}`;
  const third = name === "you" ? verb : verb + (/(?:s|sh|ch|x|o)$/.test(verb) ? "es" : "s");
  return `${name} ${third}${order.slice(verb.length)}`;
}

/** Return a card as it is drawn, or another text as it is, as nodes. */
export function dressed(text) {
  if (!isCard(text)) return [text];
  const [rank, suit] = text;
  const pip = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["class", "suit"], ["role", "img"], ["aria-label", SUIT_NAMES[suit]]]) pip.setAttribute(name, value);
  pip.append(document.createElementNS(SVG, "use"));
  pip.firstChild.setAttribute("href", `#suit-${suit}`);
  return [element("span", { className: "DH".includes(suit) ? "red" : "" }, rank === "T" ? "10" : rank, pip)];
}

/**
 * Return orders in few words, as nodes, for buttons: without a verb before a card, which is drawn, and without where it
 * comes from, unless two of them differ by that alone.
 */
export function inShort(orders) {
  const whole = orders.map((order) => order.replace(VERB_OF_A_CARD, ""));
  const parts = whole.map((words) => words.replace(/ from .* to /, " to "));
  const texts = parts.map((words, number) => (parts.filter((other) => other === words).length > 1 ? whole[number] : words));
  return texts.map((words) => words.split(new RegExp(`(${NAME})`)).flatMap((part) => dressed(CODES.get(part) ?? part)));
}

/** Return whether the words of a move say its code anyway, as those of a bid do. */
export const saysCode = (words, text) => words.toLowerCase().split(/[^a-z0-9]+/).includes(text.toLowerCase());

/** Return the code of a move as small print, which is shown on request; none if its words say it. */
export const codeOf = (words, text) => (saysCode(words, text) ? [] : [" ", element("span", { className: "code", ariaHidden: "true" }, ...dressed(text))]);

/** Return what somebody did as nodes, with the code of the move. */
export const doneBy = (name, order, text) => [did(name, order), ...codeOf(order, text)];
