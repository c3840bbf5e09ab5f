// A picture of a table: cards, piles, fans and captions at places, combined into one SVG document. The same, byte for
// byte, as card_envs/draw; the build writes `shapes.js` (card_envs/build/_drawings.py).

import { shown } from "../checks.js";
import shapes from "../built/wasm32/shapes.js";

export const CREAM = "#f3ead2";
const GOLD = "#f2c14e"; // around cards that win, and nothing else
const TURN = "#a8f0c6"; // around the seat to move
export const DARK = "#0a2f22";
export const INK = "#1d2230";
// Offsets between the cards of a fan, if there is space.
export const ACROSS = 26;
export const DOWN = 48;
const QUIET = "#d3e6dc";
const FELT = "#1d6f4e"; // where it is brightest
const WIDTH = 100;
const HEIGHT = 140;
const PENS = { light: 10, bold: 14 };
const GAP = 26; // between letters
const SPACE = 48;
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };

const NAMED = /(?: id="|href="#|url\(#)[^")]+/g; // an id, where it is given or referred to
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => { // of CRC-32, by byte
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});

const escape = (text) => text.replace(/[&<>"']/g, (letter) => ESCAPES[letter]);

/** Return the name of a card for screen readers: "7 of spades". */
export const cardName = (card) => shapes.cards[card].name;

export const suitName = (suit) => shapes.suits[suit].name;

/** Return where things lie in the picture of a view, which must be of that game. */
export function layoutOf(game, view, tall) {
  if (view?.game === game) return shapes.layouts[game][tall ? "tall" : "wide"];
  throw new Error(`view: expected a view of ${game}, got ${shown(view)}`);
}

/** Return a number as Python's `%g` writes it: six digits without trailing zeros; a half goes to the even digit. */
export function written(number) {
  if (Number.isInteger(number) && Math.abs(number) < 1e6) return String(number); // the other way is slow
  const half = /^(-?\d\.\d{4}[02468])50*(e.*)$/.exec(number.toExponential(60));
  const rounded = half ? half[1] + half[2] : number.toExponential(5);
  const [digits, exponent] = rounded.split("e").map(Number);
  if (exponent >= -4 && exponent < 6) return String(Number(rounded));
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** Fill a template with numbers as `written` returns them, and with texts. */
export function svg(parts, ...values) {
  return String.raw({ raw: parts }, ...values.map((value) => (typeof value === "number" ? written(value) : value)));
}

/** Return a text as [width, path] in 1/100 of the height of a capital. */
function stroke(text) {
  let at = 0;
  let path = "";
  for (const letter of text) {
    if (letter === " ") {
      at += SPACE;
    } else {
      const [width, shape] = shapes.letters[letter] ?? shapes.letters["?"];
      path += moved(shape, at);
      at += width + GAP;
    }
  }
  return [Math.max(at - GAP, 0), path];
}

/** Return a path moved to the right: the first of each pair of absolute coordinates, and the operand of H. */
function moved(path, right) {
  let out = "";
  let command = "";
  let isX = true;
  for (const token of path.match(/[A-Za-z]|-?[\d.]+/g)) {
    if (/[A-Za-z]/.test(token)) {
      [command, isX] = [token, true];
      out += token;
    } else {
      const value = isX && /[A-UW-Z]/.test(command) ? written(Number(token) + right) : token;
      out += (/\d$/.test(out) && value[0] !== "-" ? " " : "") + value;
      if (command !== "H") isX = !isX;
    }
  }
  return out;
}

export const textWidth = (text, height) => (stroke(text)[0] * height) / 100;

/** Return the offset between cards of a fan that fits into `room`; at most `step`. */
export const fanStep = (number, step, room, card) => (number > 1 ? Math.min(step, (room - card) / (number - 1)) : step);

/** The CRC-32 of a text in UTF-8, as eight hexadecimal digits. */
function digest(text) {
  let sum = -1;
  for (const byte of new TextEncoder().encode(text)) sum = TABLE[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (~sum >>> 0).toString(16).padStart(8, "0");
}

/** A felt table of size `width` x `height`; a card is 100 x 140. */
export class Picture {
  #parts = [];
  #defined = new Map();

  /**
   * Begin a picture; `moves` has pairs of a legal move and its [source, target], places or "". A double click sends a
   * card to the place `home`, if it may go there.
   */
  constructor(title, { width, height }, moves, home = "") {
    Object.assign(this, { title, width, height, moves, home });
  }

  /** Group what `drawn` draws as a place of the game, with a label for screen readers. */
  place(name, label, drawn) {
    this.raw(`<g data-place="${escape(name)}" role="img" aria-label="${escape(label)}">`);
    drawn();
    this.raw("</g>");
  }

  /** Draw a card's face with its top left corner at (x, y). */
  card(card, x, y, size = 1) {
    this.#use(`card-${card}`, shapes.cards[card].face, x, y, size, ` data-card="${card}"`);
  }

  /** Draw a card's back. */
  back(x, y, pack = 0, size = 1) {
    this.#use(`back-${pack}`, shapes.backs[pack], x, y, size, "");
  }

  /** Draw the gold frame of a card that wins, which is drawn next, at (x, y). */
  frame(x, y) {
    this.raw(svg`<rect x="${x - 6}" y="${y - 6}" width="112" height="152" rx="13" fill="${GOLD}"/>`);
  }

  /** Draw an empty place for a card, optionally for one suit. */
  slot(x, y, suit = "") {
    this.raw(
      svg`<rect x="${x + 2}" y="${y + 2}" width="${WIDTH - 4}" height="${HEIGHT - 4}" rx="9" fill="${DARK}" ` +
        `fill-opacity=".28" stroke="${CREAM}" stroke-opacity=".45" stroke-width="2.5" stroke-dasharray="9 7"/>`,
    );
    if (!suit) return;
    this.raw(
      svg`<path transform="translate(${x + WIDTH / 2} ${y + HEIGHT / 2}) scale(.46)" fill="${CREAM}" ` +
        `fill-opacity=".4" d="${shapes.suits[suit].pip}"/>`,
    );
  }

  /** Draw cards from the first at (x, y), each offset from the one below. */
  fan(cards, x, y, across, down = 0) {
    cards.forEach((card, number) => this.card(card, x + number * across, y + number * down));
  }

  /** Draw a pile of `size` face-down cards, thicker if it has more, with these cards face up on it. */
  pile(size, x, y, pack = 0, cards = []) {
    if (size + cards.length === 0) this.slot(x, y);
    for (let layer = 0; layer < Math.min(4, Math.floor((size + 7) / 8)); layer += 1) {
      this.back(x - 2 * layer, y - 2 * layer, pack);
    }
    if (cards.length) this.card(cards.at(-1), x, y);
  }

  /** Draw the notation's name of a place, centred on (x, y). */
  name(text, x, y) {
    this.text(text, x, y, 17, { colour: QUIET });
  }

  /** Draw a short text on a dark plate centred on (x, y). */
  badge(text, x, y) {
    const width = textWidth(text, 20) + 22;
    this.raw(
      svg`<rect x="${x - width / 2}" y="${y - 18}" width="${width}" height="36" rx="18" fill="${DARK}" ` +
        `stroke="${CREAM}" stroke-opacity=".7" stroke-width="1.5"/>`,
    );
    this.text(text, x, y, 20, { weight: "bold" });
  }

  /** Draw a caption with capitals of this height, centred on y; x is its `start`, `middle` or `end`. */
  text(text, x, y, height, { anchor = "middle", colour = CREAM, weight = "light" } = {}) {
    const [width, path] = stroke(text);
    const left = x - { start: 0, middle: 0.5, end: 1 }[anchor] * ((width * height) / 100);
    const scale = height / 100;
    const pen = (PENS[weight] * height) / 100 / scale;
    this.raw(
      svg`<path transform="translate(${left} ${y - height / 2}) scale(${scale} ${scale})" fill="none" ` +
        svg`stroke="${colour}" stroke-width="${pen}" stroke-linecap="round" stroke-linejoin="round" d="${path}"/>`,
    );
  }

  /** Draw a dark plate for captions; a bright edge marks the seat to move. */
  plate(x, y, width, height, bright = false) {
    const [edge, wide, clear] = bright ? [TURN, 5, 1] : [CREAM, 1.5, 0.35];
    this.raw(
      svg`<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="14" fill="${DARK}" fill-opacity=".62" ` +
        svg`stroke="${edge}" stroke-opacity="${clear}" stroke-width="${wide}"/>`,
    );
  }

  /** Add any SVG. */
  raw(text) {
    this.#parts.push(text);
  }

  /** Return the document; its ids end with a digest of it: no other drawing on a page has them. */
  svg() {
    const { title, width, height, home } = this;
    const groups = [...this.#defined].map(([name, group]) => `<g id="${name}">${group}</g>`).join("");
    // Not JSON.stringify of an object: moves such as "7" would come first.
    const moves = this.moves.map(([move, places]) => `${JSON.stringify(move)}:${JSON.stringify(places)}`);
    const drawing =
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" ` +
      `height="${height}" style="max-width:100%;height:auto" role="group" aria-label="${escape(title)}" ` +
      `data-moves="${escape(`{${moves}}`)}"${home && ` data-home="${escape(home)}"`}>` +
      `<defs><radialGradient id="felt" cx="50%" cy="42%" r="75%"><stop offset="0" stop-color="${FELT}"/>` +
      `<stop offset="1" stop-color="#0f4a35"/></radialGradient>${groups}</defs>` +
      `<rect width="${width}" height="${height}" rx="22" fill="url(#felt)"/>${this.#parts.join("")}</svg>\n`;
    const end = `-${digest(drawing)}`;
    return drawing.replace(NAMED, (name) => name + end);
  }

  #use(name, group, x, y, size, told) {
    this.#defined.set(name, group);
    const scaled = size === 1 ? "" : svg` scale(${size})`;
    this.raw(svg`<use href="#${name}" transform="translate(${x} ${y})${scaled}"${told}/>`);
  }
}
