// Big Ben for people: custom deals, options, views. The same as card_envs/games/big_ben/view.py.

import { ACE_LOW, chosen, dealKeys, deck, parsePack, range } from "./_shared.js";

const CARDS = deck(ACE_LOW);
const PACK_SIZE = 92;
const FULL_PILE = 3;
const FLOOR = 3; // entries below each pile
const SPANS = "5D-QD 6C-AC 7H-2H 8S-3S 9D-4D TC-5C JH-6H QS-7S KD-8D 2C-9C 3H-TH 4S-JS"; // of the foundations (BB-1)
const CHOICES = {
  fill_order: ["rounds", "pile_by_pile"],
  waste_deal: ["always", "when_stuck"],
  waste_to: ["anywhere", "foundations"],
  redeals: [0, 1],
  build_on: ["full_piles", "any_pile"],
  reward: ["win", "cards"],
};

export const NAME = "big_ben";
export const HOURS = ["12", ...range(11).map((hour) => String(hour + 1))];
export const PILES = HOURS.map((hour) => `T${hour}`);
/** The cards of each foundation, from base to last. */
export const RUNS = SPANS.split(" ").map((span) => {
  const [base, last] = span.split("-").map((card) => ACE_LOW.indexOf(card[0]));
  return range(((last - base + 13) % 13) + 1).map((step) => ACE_LOW[(base + step) % 13] + span[1]);
});

const SORTED_PACK = range(52).flatMap((code) => (RUNS.some(([base]) => base === CARDS[code]) ? [code] : [code, code]));

/** Return what remains to do if no card can be moved. */
export const question = ({ legal }) => (String(legal) === "deal" ? "No card can be moved: deal." : "");

/** Return the top card of the pile or the waste that a move takes it from; "" for `deal`. */
export const movedCard = ({ piles, waste }, move) => (move[0] === "W" ? waste : piles[move.split("-")[0]])?.at(-1) ?? "";

/** Return the pack of {pack: [92 cards in dealing order]}, in an array. */
export function parseDeal(state, deal) {
  const { pack } = dealKeys(deal, ["pack"], `{"pack": [${PACK_SIZE} cards in dealing order]}`);
  return [Int8Array.from(parsePack(pack, CARDS, SORTED_PACK, "deal.pack"))];
}

/** Return the pack of the deal on the table. */
export const dealtPack = (state) => state.pack.slice();

/** Return packs as a custom deal: the inverse of `parseDeal`. */
export const dealText = ([pack]) => ({ pack: Array.from(pack, (card) => CARDS[card]) });

/** Return the options that the state was made with. */
export const optionsOf = (state) => ({
  fill_order: state.pile_by_pile ? "pile_by_pile" : "rounds",
  waste_deal: state.when_stuck ? "when_stuck" : "always",
  waste_to: state.waste_piles ? "anywhere" : "foundations",
  redeals: state.redeals,
  build_on: state.open_from === FULL_PILE ? "full_piles" : "any_pile",
  reward: state.reward_win ? "win" : "cards",
});

/** Set the options of a blank state. */
export function setOptions(state, given) {
  const options = chosen(given, CHOICES);
  state.pile_by_pile = options.fill_order === "pile_by_pile";
  state.when_stuck = options.waste_deal === "when_stuck";
  state.waste_piles = options.waste_to === "anywhere" ? 0xfff : 0;
  state.redeals = options.redeals;
  state.open_from = options.build_on === "any_pile" ? 1 : FULL_PILE;
  state.reward_win = options.reward === "win";
}

/** Return the reason of the end ("" while it runs) and the number of cards placed so far. */
export function outcome(state) {
  const reason = state.num_placed === PACK_SIZE ? "won" : "lost";
  return { reason: state.over ? reason : "", scores: [state.num_placed] };
}

/** Return what the player may know. */
export function view(state, seat) {
  const { piles, heights, to_come: toCome, in_stock: inStock, num_dealt: dealt, stock_end: end } = state;
  const redealt = end > PACK_SIZE;
  const byHour = (value) => Object.fromEntries(HOURS.map((hour, number) => [hour, value(number)]));
  const texts = (cards) => Array.from(cards, (card) => CARDS[card]);
  return {
    seat,
    foundations: byHour((hour) => RUNS[hour].at(-1 - toCome[hour])),
    piles: Object.fromEntries(PILES.map((name, i) => [name, texts(piles[i].subarray(FLOOR, FLOOR + heights[i]))])),
    waste: texts(state.waste.subarray(0, state.num_waste)),
    hops: state.hops,
    redealt,
    stock: redealt
      ? texts(state.waste.subarray(dealt - PACK_SIZE, end - PACK_SIZE))
      : CARDS.flatMap((card, code) => Array(inStock[code]).fill(card)),
    stock_size: end - dealt,
    to_come: byHour((hour) => toCome[hour]),
    placed: state.num_placed,
  };
}
