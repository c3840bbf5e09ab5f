// Picture of Back Alley: the trick in the middle, the four seats around it, one's own hand below.

import { BIDS, SEAT_NAMES } from "../games/back_alley.js";
import { ACE_HIGH, range } from "../games/_shared.js";
import { CREAM, DARK, Picture, cardName, fanStep, layoutOf, suitName, svg } from "./picture.js";

const SMALL = 0.6; // scale of the backs of the others' hands

/** Return a view as an SVG document. */
export function draw(view, tall) {
  const at = layoutOf("back_alley", view, tall);
  const moves = view.legal.map((move) => [move, BIDS.includes(move) ? ["", ""] : [move, "trick"]]);
  const picture = new Picture(`Back Alley, deal ${view.deal_number + 1}`, at, moves);
  for (let k = 0; k < 4; k += 1) drawSeat(picture, at, view, k, tall);
  drawTeams(picture, at, view);
  drawTurned(picture, at, view);
  drawTrick(picture, at, view);
  drawHand(picture, at, view);
  return picture.svg();
}

/** Draw the name of a seat, `k` places to the left, its bid and, for the others, the number of cards. */
function drawSeat(picture, at, view, k, tall) {
  const seat = (view.seat + k) % 4;
  const [x, y] = at.plates[k];
  const narrow = tall && k % 2 === 1; // two lines beside the trick
  const [width, height] = narrow ? [at.backs_room, 100] : at.plate_size;
  const level = view.board_levels[seat];
  const number = view.hand_sizes[seat];
  const bid = view.bids[(seat - view.dealer + 3) % 4] ?? "";
  const times = bid === "board" && level > 1 ? ` x${level}` : "";
  const said = `${["", "pass", "board"].includes(bid) ? "" : "bid "}${bid}${times}`;
  const dealer = view.dealer === seat ? ", dealer" : "";
  picture.place(`seat ${seat}`, `${SEAT_NAMES[k]}: ${said || "no bid yet"}, ${number} cards${dealer}`, () => {
    picture.plate(x, y, width, height, view.to_move === seat);
    const line = y + (narrow ? 32 : height / 2);
    picture.text(SEAT_NAMES[k], x + 20, line, 26, { anchor: "start", weight: "bold" });
    if (dealer) {
      picture.raw(svg`<circle cx="${x + width - 8}" cy="${y - 1}" r="17" fill="${CREAM}"/>`);
      picture.text("D", x + width - 8, y - 1, 17, { colour: DARK, weight: "bold" });
    }
    if (narrow) picture.text(said, x + 20, y + 72, 26, { anchor: "start" });
    else picture.text(said, x + width - 20, line, 26, { anchor: "end" });
    if (!k) return;
    const [left, top] = at.backs[k - 1];
    const step = fanStep(number, 17, width, 100 * SMALL);
    const first = left + (width - 100 * SMALL - Math.max(number - 1, 0) * step) / 2;
    for (let i = 0; i < number; i += 1) picture.back(first + i * step, top, 0, SMALL);
  });
}

/** Draw points, tricks and contract of both sides. */
function drawTeams(picture, at, view) {
  const [width, height] = at.team_size;
  ["we", "they"].forEach((name, side) => {
    const [x, y] = at.teams[side];
    const team = (view.seat + side) % 2;
    const contract = view.bids.length === 4 ? ` of ${view.contracts[team]}` : "";
    const points = String(view.scores[team]);
    const taken = `took ${view.tricks_taken[team]}${contract}`;
    picture.place(`team ${team}`, `${name}: ${points} points, ${taken}`, () => {
      picture.plate(x, y, width, height);
      picture.text(name, x + 20, y + height * 0.32, 28, { anchor: "start", weight: "bold" });
      picture.text(points, x + width - 20, y + height * 0.32, 34, { anchor: "end", weight: "bold" });
      picture.text(taken, x + 20, y + height * 0.72, 25, { anchor: "start" });
    });
  });
}

/** Draw the turned card, which determines the trumps, jokers laid aside or replaced, and the number of the deal. */
function drawTurned(picture, at, { turned, redrawn, trump, laid_aside: aside, seat, deal_number: deal, size }) {
  const [x, y] = at.turned;
  const trumps = trump ? `${suitName(trump)} are trumps` : "no trumps";
  picture.place("turned", `${cardName(turned)} was turned: ${trumps}`, () => {
    picture.text(trump ? "trump" : "no trump", x, y - 26, 26, { anchor: "start", weight: "bold" });
    picture.card(turned, x, y);
  });
  redrawn.forEach((joker, number) => {
    picture.place(`redrawn ${number}`, `${cardName(joker)} was turned before and replaced`, () => {
      picture.card(joker, x + 108, y + 22 - 44 * number, 0.7);
    });
  });
  if (aside) {
    const name = SEAT_NAMES[(aside.seat - seat + 4) % 4];
    picture.place("aside", `${cardName(aside.card)} was laid aside by ${name}`, () => {
      picture.card(aside.card, x + 108, y + 22, 0.7);
    });
  }
  const [middle, line] = at.about;
  picture.text(`deal ${deal + 1}`, middle, line, 26);
  picture.text(`${size} card${size > 1 ? "s" : ""}`, middle, line + 48, 26);
}

/** Return how high a card ranks in a trick; the jokers (`B`) are trumps. */
function strength(card, led, trump) {
  const isJoker = card[1] === "B";
  const suit = isJoker ? trump : card[1];
  const rank = isJoker ? 13 + Number(card === "BB") : ACE_HIGH.indexOf(card[0]);
  return 100 * Number(suit === trump) + 50 * Number(suit === led) + rank;
}

/** Draw the trick on the table; the last one, paler, until the next begins. */
function drawTrick(picture, at, view) {
  const [[, bottom], [left, middle], [x, top], [right]] = at.trick;
  const { leader, cards } = view.tricks.at(-1) ?? { leader: 0, cards: [] };
  const complete = cards.length === 4 && view.to_move !== null;
  const seats = cards.map((_, k) => (leader + k - view.seat + 4) % 4);
  const strengths = cards.map((card) => strength(card, cards[0][1], view.turned[1]));
  const best = cards[strengths.indexOf(Math.max(...strengths))];
  const words = cards
    .map((card, i) => `${SEAT_NAMES[seats[i]]} ${cardName(card)}${card === best ? ", the best" : ""}`)
    .join(", ");
  picture.place("trick", `${complete ? "last trick" : "trick"}: ${words || "not begun"}`, () => {
    // Drop target for playing a card.
    const [width, height] = [right + 100 - left, bottom + 140 - top];
    picture.raw(svg`<rect x="${left}" y="${top}" width="${width}" height="${height}" fill-opacity="0"/>`);
    picture.raw(svg`<g opacity="${complete ? 0.55 : 1}">`);
    cards.forEach((card, i) => {
      const [across, down] = at.trick[seats[i]];
      if (card === best) picture.frame(across, down);
      picture.card(card, across, down);
    });
    picture.raw("</g>");
    if (complete) picture.text("last trick", x + 50, middle + 70, 24);
  });
}

/** Draw one's own cards: trumps first, then the suits in alternating colours. */
function drawHand(picture, at, { hand, trump }) {
  const start = trump ? "SHCD".indexOf(trump) : 0;
  const order = (card) => {
    if (card[1] === "B") return card === "BB" ? -2 : -1;
    return (("SHCD".indexOf(card[1]) - start + 4) % 4) * 13 + 12 - ACE_HIGH.indexOf(card[0]);
  };
  const cards = [...hand].sort((a, b) => order(a) - order(b));
  const [x, y] = at.hand;
  for (const row of range(Math.ceil(cards.length / at.row))) {
    const shown = cards.slice(row * at.row, (row + 1) * at.row);
    const step = fanStep(shown.length, 106, at.hand_room, 100);
    const left = x - (100 + (shown.length - 1) * step) / 2;
    shown.forEach((card, i) => {
      const isTrump = card[1] === trump || card[1] === "B";
      picture.place(card, cardName(card) + (isTrump ? ", a trump" : ""), () => {
        picture.card(card, left + i * step, y + row * 152);
      });
    });
  }
}
