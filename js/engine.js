// A game's WebAssembly module: its rules and players, compiled from card_envs. All memory is laid out here.

import { shown } from "./checks.js";
import { platform } from "./platform.js";

const MAX_ACTIONS = 32; // that a player names at once
const ROWS = 3; // of values: margin, advantage, worlds
const MAGIC = "CARDENV2";
const LAYOUT = 16; // letters
const CHECKED = MAGIC.length + LAYOUT + 4; // from here on a player's file is checked by the sum before
const HALVES = 1; // a segment of float16; else of bytes
const ERRORS = { "-1": "the action is not legal", "-2": "no decision is due", "-3": "no deal is due", "-4": "no such seat" };
const WITHIN = 64; // all memory begins at multiples of it
const PAGE = 1 << 16;

const crcs = new Int32Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  crcs[byte] = sum;
}

/** Return the CRC-32 of bytes. */
function crc32(bytes) {
  let sum = -1;
  for (const byte of bytes) sum = crcs[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return ~sum >>> 0;
}

const halves = new Float32Array(1 << 16); // every float16 as a number
for (let bits = 0; bits < 1 << 15; bits += 1) {
  const exponent = bits >> 10;
  const fraction = (bits & 0x3ff) / 1024;
  const special = fraction ? NaN : Infinity;
  halves[bits] = exponent === 31 ? special : exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
  halves[bits | (1 << 15)] = -halves[bits];
}

const bytesOf = (file, { urls, base }) => platform.bytesAt(urls?.[file] ?? String(new URL(file, base)));

export class Engine {
  #exports;
  #end; // of the memory in use
  #players = new Map();

  /**
   * Load a game; `place` says where its files are: `urls` by their names, or `base`, the URL of their folder.
   */
  static async open(name, place) {
    const files = [`${name}.wasm`, `${name}.json`].map((file) => bytesOf(file, place));
    const [code, described] = await Promise.all(files);
    const { instance } = await WebAssembly.instantiate(code, {});
    return new Engine(instance.exports, JSON.parse(new TextDecoder().decode(described)), place);
  }

  constructor(exports, description, place) {
    Object.assign(this, { description, place });
    this.#exports = exports;
    this.#end = exports.__heap_base.value;
    const { state, actions, pack, observation, seats } = description;
    this.state = this.#room(state.size);
    this.keys = this.#room(16);
    this.pack = this.#room(pack);
    this.mask = this.#room(actions);
    this.observation = this.#room(observation.size);
    this.rewards = this.#room(4 * seats);
    this.advised = this.#room(2 * MAX_ACTIONS);
    this.values = this.#room(8 * ROWS * actions);
    this.cost = this.#room(16);
  }

  /** Allocate zeroed bytes and return their address. */
  #room(size) {
    const start = Math.ceil(this.#end / WITHIN) * WITHIN;
    this.#end = start + size;
    const missing = this.#end - this.#exports.memory.buffer.byteLength;
    if (missing > 0) this.#exports.memory.grow(Math.ceil(missing / PAGE));
    return start;
  }

  /** Return a copy of what lies at an address. */
  at(Kind, address, length) {
    return new Kind(this.#exports.memory.buffer, address, length).slice();
  }

  write(address, values) {
    new values.constructor(this.#exports.memory.buffer, address, values.length).set(values);
  }

  /** Call a function on a State, whose bytes it may change. Throws an Error for what it refuses. */
  call(bytes, name, ...rest) {
    this.write(this.state, bytes);
    const found = this.#exports[`card_envs_${this.description.name}_${name}`](this.state, ...rest);
    if (found < 0) throw new Error(ERRORS[found] ?? `${name}: error ${found}`);
    bytes.set(new Uint8Array(this.#exports.memory.buffer, this.state, bytes.length));
    return found;
  }

  /** Return what is known of a player. */
  player(name) {
    const { players, opponents } = this.description;
    if (typeof name === "string" && Object.hasOwn(players, name)) return players[name];
    throw new Error(`no player ${shown(name)}; there are: ${opponents.join(", ")}`);
  }

  /** Make a player ready; its file is fetched once. */
  async ready(name) {
    const known = this.player(name);
    if (!this.#players.has(name)) {
      this.#players.set(name, bytesOf(known.file, this.place).then((file) => this.#load(known, file)));
      this.#players.get(name).catch(() => this.#players.delete(name)); // so that it can be tried again
    }
    return this.#players.get(name);
  }

  /** Return the address of a player's memory, made from its file. */
  #load({ memory, layout, file: name }, file) {
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    const begins = new TextDecoder().decode(file.subarray(0, MAGIC.length + LAYOUT));
    const isWhole = begins === MAGIC + layout && file.length >= CHECKED + 4;
    if (!isWhole || view.getUint32(CHECKED - 4, true) !== crc32(file.subarray(CHECKED))) {
      throw new Error(`${name}: the file is damaged, or of another version`);
    }
    const start = this.#room(memory);
    let at = CHECKED + 4;
    for (let left = view.getUint32(at - 4, true); left > 0; left -= 1) {
      const offset = Number(view.getBigUint64(at, true));
      const count = view.getUint32(at + 8, true);
      const isHalves = view.getUint32(at + 12, true) === HALVES;
      const stored = file.slice(at + 16, at + 16 + (isHalves ? 2 * count : count));
      at += 16 + stored.length;
      this.write(start + offset, isHalves ? Float32Array.from(new Uint16Array(stored.buffer), (bits) => halves[bits]) : stored);
    }
    return start;
  }

  /** Ask a player that is ready: {actions, values} for a State and two keys (BigInts). */
  async advise(bytes, player, keys) {
    const copy = bytes.slice(); // before the wait, in which they may change
    const memory = await this.ready(player);
    this.write(this.keys, BigUint64Array.from(keys));
    const number = this.call(copy, `advise_${player}`, memory, this.keys, this.advised, this.values);
    const values = this.at(Float64Array, this.values, ROWS * this.description.actions);
    return { actions: Array.from(this.at(Int16Array, this.advised, number)), values };
  }

  /** Ask a player that searches and is ready what an action costs: {best, cost, error}; `best` is an action. */
  async judge(bytes, player, key, action) {
    const memory = await this.ready(player);
    this.write(this.keys, BigUint64Array.of(key));
    const best = this.call(bytes.slice(), `judge_${player}`, memory, this.keys, action, this.cost);
    const [cost, error] = this.at(Float64Array, this.cost, 2);
    return { best, cost, error };
  }
}
