// Russian Bank for people: custom deals, options, views. The same as card_envs/games/russian_bank/view.py.

import { ACE_LOW, SUITS, checkInt, chosen, dealKeys, members, parsePack, range, shown } from "./_shared.js";

const CARDS = [...ACE_LOW].flatMap((rank) => [...SUITS].map((suit) => rank + suit));
const NO_CARD = 63;
const NUM_CARDS = 52;
const MOST_GAMES = 50; // of a match
const REASONS = ["", "win", "stalemate", "no_progress"];
const CHOICES = {
  start: ["low_reserve", "high_reserve", "random", "player_0", "player_1"],
  match: [false, true],
  reserve: [13, 12, 11],
  fill_houses: ["any", "reserve"],
  reward: ["points", "win", "penalty"],
};

export const NAME = "russian_bank";
export const SEAT_NAMES = ["you", "opponent"];

const texts = (cards) => Array.from(cards, (card) => CARDS[card]);

const FORCED = {
  turn: "No card can be played: turn one of your hand.",
  discard: "No card can be played: discard the one that you turned.",
  end: "No card can be played: end your turn.",
};

/** Return what remains to do if no card can be played. */
export const question = ({ legal }) => (legal.length === 1 && FORCED[legal[0]]) || "";

/** Return the top card of the house or the reserve that a move takes it from, or the turned one; "" for others. */
export function movedCard({ players, to_move: mover, turned, houses }, move) {
  const [source] = move.split("-");
  if (source[0] === "H") return houses[source[1] - 1].at(-1);
  return { R: players[mover].reserve.cards.at(-1), D: turned, discard: turned }[source] ?? "";
}

/** Return the packs of {packs: [[52 cards], [52 cards]], starts: 0, later: [{…}, …]}; only `packs` is required. */
export function parseDeal(state, deal) {
  const { later = [] } = gameKeys(deal, "deal", "starts", "later");
  if (!Array.isArray(later) || later.length >= MOST_GAMES) {
    throw new Error(`deal.later: expected a list of less than ${MOST_GAMES} deals, got ${shown(later)}`);
  }
  if (later.length && !state.match) {
    throw new Error("deal.later: only with match=true; otherwise an episode is one game");
  }
  const first = parseGame(deal, "deal");
  return [first, ...later.map((game, number) => {
    const where = `deal.later[${number}]`;
    return parseGame(gameKeys(game, where, "starts"), where);
  })];
}

function gameKeys(deal, where, ...optional) {
  return dealKeys(deal, ["packs", ...optional], '{"packs": [[52 cards], [52 cards]], "starts": 0}', where);
}

function parseGame(deal, where) {
  const { packs } = deal;
  if (!Array.isArray(packs) || packs.length !== 2) {
    throw new Error(`${where}.packs: expected the packs of player 0 and player 1, got ${shown(packs)}`);
  }
  const cards = packs.map((pack, i) => parsePack(pack, CARDS, range(NUM_CARDS), `${where}.packs[${i}]`));
  return Int8Array.of(...cards.flat(), "starts" in deal ? checkInt(deal.starts, 0, 1, `${where}.starts`) : -1);
}

/** Return the packs and the starter of the deal on the table. */
export const dealtPack = (state) => Int8Array.of(...state.packs[0], ...state.packs[1], state.starts);

/** Return packs as a custom deal: the inverse of `parseDeal`. */
export function dealText(packs) {
  const [first, ...later] = packs.map((pack) => {
    const starts = pack[2 * NUM_CARDS];
    const cards = texts(pack.subarray(0, 2 * NUM_CARDS));
    return { packs: [cards.slice(0, NUM_CARDS), cards.slice(NUM_CARDS)], ...(starts >= 0 && { starts }) };
  });
  return { ...first, ...(later.length && { later }) };
}

/** Return the options that the state was made with. */
export const optionsOf = (state) => ({
  start: CHOICES.start[state.start],
  match: state.match,
  match_target: state.match_target,
  reserve: state.dealt_reserve,
  fill_houses: CHOICES.fill_houses[Number(state.others_fill === 0)],
  reward: CHOICES.reward[state.reward],
});

/** Set the options of a blank state. */
export function setOptions(state, { match_target: target = 150, ...rest }) {
  const options = chosen(rest, CHOICES);
  state.start = CHOICES.start.indexOf(options.start);
  state.match = options.match;
  state.match_target = checkInt(target, 50, 300, "options: match_target");
  state.dealt_reserve = options.reserve;
  state.others_fill = options.fill_houses === "reserve" ? 0 : 0xff;
  state.reward = CHOICES.reward.indexOf(options.reward);
  state.turned = NO_CARD;
  state.tops.fill(NO_CARD);
}

/** Return the reason of the end ("" while it runs) and each player's points so far. */
export function outcome(state) {
  const reason = state.match ? "match" : REASONS[state.game_end];
  return { reason: state.over ? reason : "", scores: [...state.scores] };
}

/** Return what a seat may know. */
export function view(state, seat) {
  const { turned, foundations } = state;
  return {
    seat,
    game_number: state.game_number - state.needs_deal,
    scores: [...state.scores],
    starts: state.starts,
    turned: turned === NO_CARD ? null : CARDS[turned],
    players: [0, 1].map((player) => playerView(state, player)),
    houses: Array.from(state.houses, (house) => texts(members(house)).reverse()),
    foundations: Object.fromEntries([...SUITS].map((suit, i) => [suit, [...foundations.subarray(2 * i, 2 * i + 2)]])),
    house_moves: state.house_moves,
    idle_turns: state.idle,
    progress: state.progress,
    dealt: [0, 1].map((player) => dealt(state, player)),
  };
}

function playerView(state, player) {
  const lowest = state.lowest_reserves[player];
  const faceDown = Math.max(lowest - 1, 0);
  const reserveSize = state.reserve_sizes[player];
  const first = state.hand_next[player];
  const size = state.hand_sizes[player];
  const wasteSize = state.waste_sizes[player];
  const reserve = state.reserves[player].subarray(1 + faceDown, 1 + reserveSize);
  const hand = state.hands[player].subarray(first, first + size);
  return {
    reserve: { face_down: faceDown, cards: texts(reserve), lowest },
    hand: { size, cards: state.first_pass[player] ? null : texts(hand) },
    waste: texts(state.wastes[player].subarray(1, 1 + wasteSize)),
    unseen: texts(members(state.unseen[player])),
    stale: state.stale[player],
    penalty_points: 2 * reserveSize + size + wasteSize,
  };
}

/** Return a pack as dealt, as far as its cards were seen. */
function dealt(state, player) {
  const unseen = new Set(members(state.unseen[player]));
  return Array.from(state.packs[player], (card) => (unseen.has(card) ? null : CARDS[card]));
}
