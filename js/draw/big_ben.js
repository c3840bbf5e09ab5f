// Picture of Big Ben: a clock with twelve foundations around its face, and the piles around them.

import { HOURS, PILES, RUNS } from "../games/big_ben.js";
import { range } from "../games/_shared.js";
import { ACROSS, CREAM, DOWN, INK, Picture, cardName, fanStep, layoutOf, svg, textWidth } from "./picture.js";

const PACK_SIZE = 92;
const FULL_PILE = 3;
const ROMAN = ["XII", "I", "II", "III", "IIII", "V", "VI", "VII", "VIII", "IX", "X", "XI"]; // IIII, as on clocks
const RING = 296; // distance of the foundations' centres from the middle
const FACE = 196; // radius of the clock's face

/** Return a view as an SVG document. */
export function draw(view, tall) {
  const at = layoutOf("big_ben", view, tall);
  const moves = view.legal.map((move) => [move, move === "deal" ? ["stock", "stock"] : move.split("-")]);
  const picture = new Picture(`Big Ben, ${view.placed} of ${PACK_SIZE} cards placed`, at, moves, "F");
  drawFace(picture, at, view.placed / PACK_SIZE);
  HOURS.forEach((hour, i) => drawFoundation(picture, at, i, view.foundations[hour]));
  PILES.forEach((pile, i) => drawPile(picture, at, i, view.piles[pile], tall));
  drawStockAndWaste(picture, at, view);
  const lacking = Object.values(view.piles).map((pile) => Math.max(0, FULL_PILE - pile.length));
  const gaps = view.stock_size ? lacking.reduce((sum, number) => sum + number, 0) : 0;
  const [x, y] = at.placed;
  const placed = String(view.placed);
  picture.text(placed, x, y, 44, { anchor: "start", weight: "bold" });
  picture.text(`of ${PACK_SIZE}`, x + textWidth(placed, 44) + 18, y + 8, 28, { anchor: "start" });
  const counted = (number, what) => (number ? `${number} ${what}${number > 1 ? "s" : ""}` : "");
  const [right, line] = at.gaps;
  picture.text(counted(gaps, "gap") || counted(view.hops, "hop"), right, line + 4, 28, { anchor: "end" });
  return picture.svg();
}

/** Return the position of an hour on a circle around the origin. */
const onClock = (hour, radius) => [radius * Math.sin((hour * Math.PI) / 6), -radius * Math.cos((hour * Math.PI) / 6)];

/** Draw the clock; its hands go around once, to twelve, as cards are placed. */
function drawFace(picture, at, done) {
  const minutes = range(60).map((i) =>
    `<path d="M0 ${-FACE + 9}V${-FACE + (i % 5 === 0 ? 22 : 15)}" transform="rotate(${6 * i})" ` +
    `stroke-width="${i % 5 === 0 ? 4.5 : 1.8}"/>`);
  const [x, y] = at.middle;
  picture.raw(
    svg`<g transform="translate(${x} ${y})"><circle r="${FACE}" fill="${CREAM}" stroke="#b58a2a" stroke-width="9"/>` +
      `<circle r="${FACE - 5}" fill="none" stroke="${INK}" stroke-width="1.6"/>` +
      `<circle r="${FACE - 66}" fill="none" stroke="#b58a2a" stroke-width="1.6"/>` +
      `<g stroke="${INK}">${minutes.join("")}</g>`,
  );
  ROMAN.forEach((numeral, i) => {
    picture.text(numeral, ...onClock(i, FACE - 44), 26, { colour: INK, weight: "bold" });
  });
  const petal = "M0-24C10-46 10-70 0-92-10-70-10-46 0-24Z";
  const petals = range(12).map((i) => `<path d="${petal}" transform="rotate(${30 * i})"/>`);
  const [hour, minute] = [done, (12 * done) % 1].map((turns) => (360 * turns).toFixed(1));
  picture.raw(
    `<g fill="#b58a2a" fill-opacity=".22">${petals.join("")}</g>` +
      `<path d="M-7 20 -4.5-84 0-108 4.5-84 7 20Z" fill="${INK}" transform="rotate(${hour})"/>` +
      `<path d="M-4.5 30-2.5-138 0-160 2.5-138 4.5 30Z" fill="${INK}" transform="rotate(${minute})"/>` +
      `<circle r="12" fill="${INK}"/><circle r="5" fill="#b58a2a"/></g>`,
  );
}

function drawFoundation(picture, at, i, top) {
  const [across, down] = onClock(i, RING);
  const x = at.middle[0] + across - 50;
  const y = at.middle[1] + down - 70;
  const left = RUNS[i].length - 1 - RUNS[i].indexOf(top);
  picture.place("F", `hour ${HOURS[i]}: ${cardName(top)}, ${left ? `${left} to come` : "complete"}`, () => {
    if (!left) picture.frame(x, y);
    picture.card(top, x, y);
  });
}

/** Draw a pile as a fan across or down: its first three cards, then the run built on them, closer if it is long. */
function drawPile(picture, at, i, cards, tall) {
  const [step, size] = tall ? [DOWN - 2, 140] : [ACROSS, 100];
  const base = FULL_PILE - 1;
  const rest = fanStep(cards.length - base, step, at.room - base * step, size);
  const offsets = range(Math.max(cards.length, 1)).map((k) => (k <= base ? k * step : base * step + (k - base) * rest));
  const extra = Math.max(offsets.at(-1) - base * step, 0); // beyond three cards
  let [x, y] = at.piles[i].map((anchor, axis) => anchor + at.middle[axis]);
  if (tall) {
    x -= 50;
    if (y < at.middle[1]) y -= offsets.at(-1) + size;
    else if (y === at.middle[1]) y -= (base * step + size + extra) / 2;
  } else {
    const half = i % 6 === 0 ? extra / 2 : 0;
    x -= (base * step + size) / 2 + (i > 6 ? extra : half); // away from the clock
    y -= 70;
  }
  picture.place(PILES[i], `pile ${HOURS[i]}: ${cards.map(cardName).join(", ") || "empty"}`, () => {
    if (!cards.length) picture.slot(x, y);
    cards.forEach((card, k) => picture.card(card, x + (tall ? 0 : offsets[k]), y + (tall ? offsets[k] : 0)));
    picture.name(PILES[i], ...(tall ? [x + 50, y - 17] : [x - 24, y + 70]));
  });
}

function drawStockAndWaste(picture, at, { stock_size: size, waste }) {
  const [x, y] = at.stock;
  picture.place("stock", `stock: ${size} cards`, () => {
    picture.pile(size, x, y);
    picture.badge(String(size), x + 24, y + 134);
  });
  const [right, line] = at.waste;
  const shown = waste.slice(-at.waste_shown);
  const left = right - 100 - Math.max(shown.length - 1, 0) * ACROSS;
  const top = waste.length ? `, ${cardName(waste.at(-1))} on top` : "";
  picture.place("W", `waste: ${waste.length} cards${top}`, () => {
    if (!waste.length) picture.slot(left, line);
    picture.fan(shown, left, line, ACROSS);
    picture.badge(String(waste.length), left + 24, line + 134);
  });
}
