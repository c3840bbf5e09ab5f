// Back Alley for people: custom deals, options, views. The same as card_envs/games/back_alley/view.py.

import { ACE_HIGH, SUITS, checkInt, chosen, dealKeys, deck } from "./_shared.js";
import { members, parsePack, range, shown } from "./_shared.js";

const LITTLE_BLOOPER = 52;
const NUM_CARDS = 54;
const CARDS = [...deck(ACE_HIGH), "LB", "BB"];
const MATCH = [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]; // hand sizes (BA-3)
const MOST_DEALS = 100;

export const NAME = "back_alley";
export const BIDS = ["pass", ...range(12).map((bid) => String(bid + 1)), "board"];
export const SEAT_NAMES = ["you", "left", "partner", "right"];

const shifted = (card, by) => (card >= LITTLE_BLOOPER ? card : (card + 13 * by + 52) % 52);

/** Return the text of a relative code. */
const cardText = (state, card) => CARDS[shifted(card, -state.shift)];

/** Return a set of relative codes as texts, by suit and rank. */
function cardTexts(state, cards) {
  const codes = members(cards).map((card) => shifted(card, -state.shift));
  return codes.sort((a, b) => a - b).map((code) => CARDS[code]);
}

/** Return what the partner of a view's seat bid; undefined if it has not bid yet. */
const partnersBid = ({ seat, dealer, bids }) => bids[(seat + 5 - dealer) % 4];

/** Return what a bid is added to, once the partner has bid (BA-7). */
export function question(view) {
  const partners = partnersBid(view);
  if (partners === undefined || view.bids.length === 4) return "";
  if (partners === "board") return "Your partner bid board: your team must take every trick. What do you bid?";
  if (partners === "pass") return "Your partner passed. How many tricks do you bid?";
  return `Your partner bid ${partners}. How many tricks do you add?`;
}

/** Return the team's contract by each legal bid, once the partner has bid (BA-7). */
export function moveNotes(view) {
  const partners = partnersBid(view);
  if (partners === undefined || view.bids.length === 4) return {};
  return Object.fromEntries(view.legal.map((bid) => {
    const contract = BIDS.indexOf(bid) + BIDS.indexOf(partners);
    const together = `together ${contract}${contract > view.size ? ", too many" : ""}`;
    return [bid, [bid, partners].includes("board") ? "every trick" : together];
  }));
}

/** Return the packs of {dealer: 0, size: 7, packs: [[54 cards], …]}; only `packs` is required. */
export function parseDeal(state, deal) {
  const example = '{"dealer": 0, "packs": [[54 cards in dealing order], …]}';
  const given = dealKeys(deal, ["packs", "dealer", "size"], example);
  if (!Array.isArray(given.packs) || !given.packs.length) {
    throw new Error(`deal.packs: expected a list of at least one pack, got ${shown(given.packs)}`);
  }
  if ("size" in given && !state.single) {
    throw new Error('deal.size: only for deals="single"; otherwise the option gives the sizes');
  }
  const packs = given.packs.map((pack, number) =>
    Int8Array.of(...parsePack(pack, CARDS, range(NUM_CARDS), `deal.packs[${number}]`), -1, -1));
  if ("dealer" in given) packs[0][NUM_CARDS] = checkInt(given.dealer, 0, 3, "deal.dealer");
  if ("size" in given) packs[0][NUM_CARDS + 1] = checkInt(given.size, 1, 13, "deal.size");
  return packs;
}

/** Return the pack of the deal on the table. */
export const dealtPack = (state) => Int8Array.of(...state.pack, state.dealer, state.single ? state.hand_size : -1);

/** Return packs as a custom deal: the inverse of `parseDeal`. */
export function dealText(packs) {
  const [dealer, size] = packs[0].subarray(NUM_CARDS);
  return {
    ...(dealer >= 0 && { dealer }),
    ...(size >= 0 && { size }),
    packs: packs.map((pack) => Array.from(pack.subarray(0, NUM_CARDS), (card) => CARDS[card])),
  };
}

/** Return the options that the state was made with. */
export function optionsOf(state) {
  const sizes = [...state.sizes.subarray(0, state.num_deals)];
  const deals = state.single ? "single" : sizes;
  return {
    ...(String(deals) !== String(MATCH) && { deals }),
    blooper_turned: state.redraws ? "redraw" : "no_trump",
    reward: state.reward_win ? "win" : "points",
  };
}

/** Set the options of a blank state. */
export function setOptions(state, { deals = null, ...rest }) {
  const choices = { blooper_turned: ["no_trump", "redraw"], reward: ["points", "win"] };
  const { blooper_turned: blooperTurned, reward } = chosen(rest, choices);
  const listed = Array.isArray(deals) && deals.length > 0 && deals.length <= MOST_DEALS;
  if (!listed && deals !== null && deals !== "single") {
    const expected = `"single" or a list of 1 to ${MOST_DEALS} hand sizes`;
    throw new Error(`options: deals: expected ${expected}, got ${shown(deals)}`);
  }
  if (listed) deals.forEach((size, number) => checkInt(size, 1, 13, `options: deals[${number}]`));
  state.single = deals === "single";
  const sizes = state.single ? MATCH.slice(0, 1) : deals ?? MATCH;
  state.num_deals = sizes.length;
  state.sizes.set(sizes);
  state.redraws = blooperTurned === "redraw";
  state.reward_win = reward === "win";
}

/** Return the reason of the end ("" while it runs) and each seat's team points so far. */
export function outcome(state) {
  const [first, second] = state.scores;
  return { reason: state.over ? "played" : "", scores: [first, second, first, second] };
}

/** Return what a seat may know. */
export function view(state, seat) {
  const { bids, hands, turned, leaders, dealer, laid_aside_by: laidBy } = state;
  const first = 4 * state.hand_size; // turned up
  const history = Array.from(state.history.subarray(0, state.num_played), (card) => cardText(state, card));
  return {
    seat,
    deal_number: state.deal_number - state.over,
    pass_outs: state.pass_outs,
    size: state.hand_size,
    dealer,
    scores: outcome(state).scores,
    turned: CARDS[turned],
    redrawn: range(members(BigInt(state.redrawn)).length).map((number) => CARDS[state.pack[first + number]]),
    laid_aside: laidBy >= 0 ? { seat: laidBy, card: CARDS[105 - turned] } : null,
    hand: cardTexts(state, hands[seat]),
    bids: range(state.num_bids).map((k) => BIDS[bids[(dealer + 1 + k) & 3]]),
    tricks: range(Math.ceil(history.length / 4)).map((trick) => ({
      leader: leaders[trick],
      cards: history.slice(4 * trick, 4 * trick + 4),
    })),
    trump: turned < LITTLE_BLOOPER ? SUITS[Math.floor(turned / 13)] : null,
    hand_sizes: Array.from(hands, (hand) => members(hand).length),
    tricks_taken: [...state.tricks],
    contracts: [...state.contracts],
    board_levels: [...state.levels],
  };
}
