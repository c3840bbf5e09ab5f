// What the games' modules share: cards, options, custom deals.

import { shown } from "../checks.js";

export { shown };

export const SUITS = "CDHS";
export const ACE_HIGH = "23456789TJQKA";
export const ACE_LOW = "A23456789TJQK";

/** Return the 52 cards as text, ordered by suit, then as in `ranks`. */
export const deck = (ranks) => [...SUITS].flatMap((suit) => [...ranks].map((rank) => rank + suit));

/** Return the numbers from 0. */
export const range = (size) => Array.from({ length: size }, (_, number) => number);

/** Return the members of a set of cards, in ascending order. */
export function members(set) {
  const found = [];
  for (let card = 0; set >> BigInt(card); card += 1) if ((set >> BigInt(card)) & 1n) found.push(card);
  return found;
}

export function checkInt(value, low, high, where) {
  if (Number.isInteger(value) && value >= low && value <= high) return value;
  throw new Error(`${where}: expected a whole number from ${low} to ${high}, got ${shown(value)}`);
}

/** Return options with the defaults filled in; `choices` has the values of each by name, the default first. */
export function chosen(given, choices) {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(choices, name)) {
      throw new Error(`options: unknown option ${shown(name)}; expected ${Object.keys(choices).join(", ")}`);
    }
    if (!choices[name].includes(value)) {
      throw new Error(`options: ${name}: expected ${choices[name].map(shown).join(" or ")}, got ${shown(value)}`);
    }
  }
  return { ...Object.fromEntries(Object.entries(choices).map(([name, values]) => [name, values[0]])), ...given };
}

/** Return a custom deal that has the first key and no others than these. */
export function dealKeys(deal, keys, example, where = "deal") {
  if (typeof deal !== "object" || deal === null || !Object.hasOwn(deal, keys[0])) {
    throw new Error(`${where}: expected ${example}, got ${shown(deal)}`);
  }
  const unknown = Object.keys(deal).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new Error(`${where}: unknown key ${shown(unknown)}; expected ${keys.join(", ")}`);
  }
  return deal;
}

/** Return the codes of a pack given as texts; `names` has each code's text, `expected` the codes with repetitions. */
export function parsePack(pack, names, expected, where) {
  if (!Array.isArray(pack)) {
    throw new Error(`${where}: expected a list of ${expected.length} cards, got ${shown(pack)}`);
  }
  const left = new Map();
  for (const code of expected) left.set(code, (left.get(code) ?? 0) + 1);
  const cards = pack.map((card, position) => {
    const code = names.indexOf(card);
    if (!left.has(code)) {
      const known = [...left.keys()].map((one) => names[one]).join(" ");
      throw new Error(`${where}: card ${position} is ${shown(card)}, expected one of ${known}`);
    }
    if (!left.get(code)) throw new Error(`${where}: card ${position}, ${shown(card)}, occurs too often`);
    left.set(code, left.get(code) - 1);
    return code;
  });
  if (cards.length !== expected.length) {
    const missing = [...left].filter(([, number]) => number).map(([code]) => names[code]).join(" ");
    throw new Error(`${where}: expected ${expected.length} cards, got ${cards.length}; missing: ${missing}`);
  }
  return cards;
}
