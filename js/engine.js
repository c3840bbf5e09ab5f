// A game's WebAssembly module: its rules and players, compiled from card_envs. All memory is laid out here.

const MAX_ACTIONS = 32; // that a player names at once
const ROWS = 5; // of values
const MAGIC = "CARDENV1";
const LAYOUT = 16; // letters
const HALVES = 1; // a segment of float16; else of bytes
const ERRORS = { "-1": "the action is not legal", "-2": "no decision is due", "-3": "no deal is due", "-4": "no such seat" };
const WITHIN = 64; // all memory begins at multiples of it
const PAGE = 1 << 16;

/** Return the bytes of a file at a URL; in Node, `file:` URLs are read from disk. */
export async function bytesAt(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(url));
  }
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${reply.statusText}`);
  return new Uint8Array(await reply.arrayBuffer());
}

const halves = new Float32Array(1 << 16); // every float16 as a number
for (let bits = 0; bits < 1 << 15; bits += 1) {
  const exponent = bits >> 10;
  const fraction = (bits & 0x3ff) / 1024;
  const special = fraction ? NaN : Infinity;
  halves[bits] = exponent === 31 ? special : exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
  halves[bits | (1 << 15)] = -halves[bits];
}

export class Engine {
  #exports;
  #end; // of the memory in use
  #players = new Map();

  /** Load a game; `base` is the URL of the folder with its files. */
  static async open(name, base) {
    const [code, described] = await Promise.all([`${name}.wasm`, `${name}.json`].map((file) => bytesAt(new URL(file, base))));
    const { instance } = await WebAssembly.instantiate(code, {});
    return new Engine(instance.exports, JSON.parse(new TextDecoder().decode(described)), base);
  }

  constructor(exports, description, base) {
    Object.assign(this, { description, base });
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

  /** Make a player ready; its file is fetched once. */
  async ready(name) {
    const known = this.description.players[name];
    if (!known) throw new Error(`no player ${JSON.stringify(name)}; there are: ${this.description.opponents.join(", ")}`);
    if (!this.#players.has(name)) {
      this.#players.set(name, bytesAt(new URL(known.file, this.base)).then((file) => this.#load(known, file)));
      this.#players.get(name).catch(() => this.#players.delete(name)); // so that it can be tried again
    }
    return this.#players.get(name);
  }

  /** Return the address of a player's memory, made from its file. */
  #load({ memory, layout, file: name }, file) {
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    const begins = new TextDecoder().decode(file.subarray(0, MAGIC.length + LAYOUT));
    if (begins !== MAGIC + layout) throw new Error(`${name}: the file is damaged, or of another version`);
    const start = this.#room(memory);
    let at = MAGIC.length + LAYOUT + 4;
    for (let left = view.getUint32(at - 4, true); left > 0; left -= 1) {
      const offset = Number(view.getBigUint64(at, true));
      const count = view.getUint32(at + 8, true);
      const isHalves = view.getUint32(at + 12, true) === HALVES;
      const stored = file.slice(at + 16, at + 16 + (isHalves ? 2 * count : count));
      at += 16 + stored.length;
      this.write(start + offset, isHalves ? Float32Array.from(new Uint16Array(stored.buffer), (bits) => halves[bits]) : stored);
    }
    if (at !== file.length) throw new Error(`${name}: the file is damaged`);
    return start;
  }

  /** Ask a player that is ready: {actions, values} for a State and two keys (BigInts). */
  async advise(bytes, player, keys) {
    const memory = await this.ready(player);
    this.write(this.keys, BigUint64Array.from(keys));
    const copy = bytes.slice();
    const number = this.call(copy, `advise_${player}`, memory, this.keys, this.advised, this.values);
    const values = this.at(Float64Array, this.values, ROWS * this.description.actions);
    return { actions: Array.from(this.at(Int16Array, this.advised, number)), values };
  }
}
