// Picture of Russian Bank: foundations in the middle, houses fanned beside or below them, one's own piles nearest.

import { SEAT_NAMES } from "../games/russian_bank.js";
import { ACE_LOW, SUITS } from "../games/_shared.js";
import { ACROSS, DOWN, Picture, cardName, fanStep, layoutOf, suitName } from "./picture.js";

const WASTE_SHOWN = 5;
const RESERVE_ROOM = 250;
const TOUCHED = { turn: ["hand", "hand"], discard: ["D", "waste"], end: ["", ""] };

/** Return a view as an SVG document. */
export function draw(view, tall) {
  const at = layoutOf("russian_bank", view, tall);
  const moves = view.legal.map((move) => [move, TOUCHED[move] ?? move.split("-")]);
  const picture = new Picture("Russian Bank", at, moves, "F");
  at.foundations.forEach(([x, y], number) => {
    const suit = SUITS[Math.floor(number / 2)];
    drawFoundation(picture, x, y, suit, view.foundations[suit][number % 2]);
  });
  view.houses.forEach((cards, number) => drawHouse(picture, at, number, cards, tall));
  drawPlayer(picture, at, view, 1 - view.seat, at.rows[0], false);
  drawPlayer(picture, at, view, view.seat, at.rows[1], true);
  return picture.svg();
}

function drawFoundation(picture, x, y, suit, height) {
  const top = height ? ACE_LOW[height - 1] + suit : "";
  picture.place("F", `foundation of ${suitName(suit)}: ${top ? cardName(top) : "empty"}`, () => {
    if (top) picture.card(top, x, y);
    else picture.slot(x, y, suit);
  });
}

/** Draw a house, fanned down, or across; left of the foundations it grows towards them. */
function drawHouse(picture, at, number, cards, tall) {
  picture.place(`H${number + 1}`, `house ${number + 1}: ${cards.map(cardName).join(", ") || "empty"}`, () => {
    const step = fanStep(cards.length, tall ? DOWN : ACROSS, at.room, tall ? 140 : 100);
    const length = Math.max(cards.length - 1, 0) * step;
    const [corner, y] = at.houses[number];
    const x = corner + (!tall && number < 4 ? at.room - 100 - length : 0);
    if (!cards.length) picture.slot(x, y);
    picture.fan(cards, x, y, tall ? 0 : step, tall ? step : 0);
    const beside = number < 4 ? x - 22 : x + 100 + length + 22;
    picture.name(`H${number + 1}`, ...(tall ? [x + 50, y - 20] : [beside, y + 70]));
  });
}

/** Draw a player's reserve, waste, turned card and hand. */
function drawPlayer(picture, at, view, player, y, own) {
  const { reserve, waste, hand } = view.players[player];
  const moving = view.to_move === player;
  const turned = moving ? view.turned : null;
  const whose = own ? "your" : "opponent's";
  const number = reserve.face_down + reserve.cards.length;
  const badge = (size, x) => {
    if (size) picture.badge(String(size), x + 24, y + 132);
  };
  const onTop = (cards) => (cards.length ? `, ${cardName(cards.at(-1))} on top` : "");
  picture.place(own ? "R" : "OR", `${whose} reserve: ${number} cards${onTop(reserve.cards)}`, () => {
    picture.pile(reserve.face_down, at.reserve, y, player, reserve.cards);
    picture.fan(reserve.cards, at.reserve, y, fanStep(reserve.cards.length, ACROSS, RESERVE_ROOM, 100));
    badge(number, at.reserve);
  });
  picture.place(own ? "waste" : "OW", `${whose} waste: ${waste.length} cards${onTop(waste)}`, () => {
    if (!waste.length) picture.slot(at.waste, y);
    picture.fan(waste.slice(-WASTE_SHOWN), at.waste, y, ACROSS);
    badge(waste.length, at.waste);
  });
  if (turned) {
    picture.place(own ? "D" : "turned", `${whose} turned card: ${cardName(turned)}`, () => {
      picture.card(turned, at.turned, y);
    });
  }
  const left = hand.size - (turned ? 1 : 0);
  picture.place(own ? "hand" : "other hand", `${whose} hand: ${left} cards`, () => {
    picture.pile(left, at.hand, y, player);
    badge(left, at.hand);
  });
  drawName(picture, at, view, player, SEAT_NAMES[own ? 0 : 1], y, moving);
}

/** Draw a player's name, points in a match, and the cost of the cards left (RB-21). */
function drawName(picture, at, view, player, name, row, moving) {
  const [width, height] = at.name_size;
  const x = at.name[0];
  const y = row + at.name[1];
  const said = view.options.match ? `${view.scores[player]} points` : `${view.players[player].penalty_points} left`;
  picture.place(`seat ${player}`, `${name}: ${said}`, () => {
    picture.plate(x, y, width, height, moving);
    if (height > 80) {
      picture.text(name, x + 18, y + height * 0.32, 28, { anchor: "start", weight: "bold" });
      picture.text(said, x + 18, y + height * 0.7, 26, { anchor: "start" });
    } else {
      picture.text(name, x + 20, y + height / 2, 28, { anchor: "start", weight: "bold" });
      picture.text(said, x + width - 20, y + height / 2, 28, { anchor: "end" });
    }
  });
}
