// Card games with their players, in a browser or in Node:
//
//   const game = await load("back_alley");
//   const table = game.deal({ seed: 1 });
//   while (!table.over) table.play(await table.choose("small"));
//   console.log(table.outcome());

import { checkKeys, checkObject, checkSignal, shown } from "./checks.js";
import { Engine } from "./engine.js";
import { reader } from "./layout.js";
import { Thinker } from "./thinker.js";
import { cardOf, newState, notesOf, questionOf, viewOf } from "./views.js";

// Each game's module and, where no folder is named, the URLs of its files; all written out, for bundlers.
const MODULES = {
  back_alley: [() => import("./games/back_alley.js"), () => import("./built/wasm32/back_alley.files.js")],
  big_ben: [() => import("./games/big_ben.js"), () => import("./built/wasm32/big_ben.files.js")],
  russian_bank: [() => import("./games/russian_bank.js"), () => import("./built/wasm32/russian_bank.files.js")],
};

/** The names of the games. */
export const GAMES = Object.keys(MODULES);

const thinker = new Thinker();
const MASK = (1n << 64n) - 1n;

/** Hash 64 bits to 64 bits (splitmix64), as card_envs does. */
function mix(bits) {
  let found = bits & MASK;
  found = ((found ^ (found >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  found = ((found ^ (found >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return found ^ (found >> 31n);
}

/** Return a seed from 0 to 2 ** 64 - 1 as a BigInt; a random one if none is given. */
function seedOf(seed) {
  if (seed === undefined) return crypto.getRandomValues(new BigUint64Array(1))[0];
  const given = typeof seed === "bigint" || Number.isSafeInteger(seed) ? BigInt(seed) : -1n;
  if (given >= 0n && given <= MASK) return given;
  throw new Error(`seed: expected a whole number from 0 to 2 ** 64 - 1, got ${shown(seed)}`);
}

/** Return the URL of a folder. */
function folderAt(base) {
  const text = String(base instanceof URL ? base : typeof base === "string" ? base : "");
  const here = globalThis.location?.href;
  if (text && URL.canParse(text, here)) return String(new URL(text.endsWith("/") ? text : `${text}/`, here));
  throw new Error(`base: expected the URL of a folder, got ${shown(base)}`);
}

/**
 * Load a game: "back_alley", "russian_bank" or "big_ben".
 *
 * `base` is the URL of the folder with the compiled files; by default they are in the package.
 */
export async function load(name, how = {}) {
  if (!GAMES.includes(name)) throw new Error(`game: no ${shown(name)}; there are: ${GAMES.join(", ")}`);
  const { base } = checkKeys(how, ["base"], "load");
  const [own, files] = MODULES[name];
  const place = base === undefined ? { urls: (await files()).default } : { base: folderAt(base) };
  const [engine, game] = await Promise.all([Engine.open(name, place), own()]);
  return new Game(engine, game);
}

class Game {
  constructor(engine, own) {
    Object.assign(this, { engine, own, read: reader(engine.description.state) });
  }

  /** Sizes, fields, options and players of the game. */
  get description() {
    return this.engine.description;
  }

  /**
   * Return a table of a new episode.
   *
   * The same seed deals the same cards as in Python. `deal` is a custom deal in the format of the game's rules; after
   * its packs, deals are random.
   */
  deal(how = {}) {
    const { seed, options = {}, deal } = checkKeys(how, ["seed", "options", "deal"], "deal");
    checkObject(options, "options");
    return new Table(this, seedOf(seed), options, deal);
  }
}

class Table {
  #bytes;
  #given = []; // packs to deal
  #dealt = []; // packs
  #moves = [];
  #plans = new Map(); // what a player means to play next, by what it sees

  constructor(game, seed, options, deal) {
    this.game = game;
    if (seed === null) return; // a copy
    const { engine, own } = game;
    this.#bytes = newState(own, engine.description.state, game.read, options);
    if (deal !== undefined) this.#given = own.parseDeal(this.#state, deal);
    if (this.#given.length) {
      this.#state.rng = mix(mix(seed + 0x9e3779b97f4a7c15n) + 0x9e3779b97f4a7c15n);
      this.#deal();
    } else {
      engine.write(engine.keys, BigUint64Array.of(seed));
      engine.call(this.#bytes, "begin", engine.keys);
      this.#dealt.push(own.dealtPack(this.#state));
    }
  }

  get #state() {
    return this.game.read(this.#bytes);
  }

  #deal() {
    const { engine, own } = this.game;
    while (this.#state.needs_deal) {
      const pack = this.#given[this.#dealt.length];
      if (pack) {
        engine.write(engine.pack, Int8Array.from(pack));
        engine.call(this.#bytes, "set_deal", engine.pack);
      } else {
        engine.call(this.#bytes, "deal");
      }
      this.#dealt.push(own.dealtPack(this.#state));
    }
  }

  /** The seat to move; null after the end. */
  get seat() {
    return this.over ? null : this.#state.seat;
  }

  /** True after the end of the episode. */
  get over() {
    return this.#state.over;
  }

  /** What the last move paid each seat. */
  get rewards() {
    return Array.from(this.#state.rewards);
  }

  /** The moves so far. */
  get moves() {
    return [...this.#moves];
  }

  /** Return the legal moves of the seat to move, as texts. */
  legal() {
    return this.#legal().map((action) => this.#text(action));
  }

  #legal() {
    const { engine } = this.game;
    if (this.over) return [];
    engine.call(this.#bytes, "legal", engine.mask);
    const mask = engine.at(Int8Array, engine.mask, engine.description.actions);
    return [...mask.keys()].filter((action) => mask[action]);
  }

  #text(action) {
    const { engine } = this.game;
    return engine.description.texts[engine.call(this.#bytes, "text", action)];
  }

  /** Play a move, and deal if that is due. Throws an Error for what is no legal move. */
  play(move) {
    const action = this.#actionOf(move);
    this.game.engine.call(this.#bytes, "play", action);
    this.#moves.push(move);
    if (!this.over) this.#deal();
  }

  /** Return a legal action by its text. */
  #actionOf(move) {
    if (this.over) throw new Error("the game is over");
    const legal = this.#legal();
    const action = legal.find((one) => this.#text(one) === move);
    if (action !== undefined) return action;
    const texts = legal.map((one) => this.#text(one)).join(", ");
    throw new Error(`${shown(move)} is not a legal move now; expected one of ${texts}`);
  }

  /** Return all that a seat may know, as the protocol shows it. */
  view(seat = this.#state.seat) {
    return viewOf(this.game.own, this.#state, this.#seatOf(seat), this.legal());
  }

  /** Return what a seat is asked, in words for people; empty if it is not to move. */
  question(seat = this.#state.seat) {
    return questionOf(this.game.own, this.game.description.questions, this.view(seat));
  }

  /** Return what a seat's legal moves come to, by their text, where it needs to be said: {3: "together 4"}. */
  moveNotes(seat = this.#state.seat) {
    return notesOf(this.game.own, this.view(seat));
  }

  /** Return the card that a legal move takes, where all see it and the move does not say it; else "". */
  movedCard(move) {
    return cardOf(this.game.own, this.view(), move);
  }

  /** Return what a seat may know as numbers, by the names of the observation's fields. */
  observation(seat = this.#state.seat) {
    const { engine } = this.game;
    const { size, fields } = engine.description.observation;
    engine.call(this.#bytes, "observe", this.#seatOf(seat), engine.observation);
    const whole = engine.at(Int8Array, engine.observation, size);
    return Object.fromEntries(fields.map(({ name, offset, size: own }) => [name, whole.subarray(offset, offset + own)]));
  }

  #seatOf(seat) {
    const { seats } = this.game.description;
    if (Number.isInteger(seat) && seat >= 0 && seat < seats) return seat;
    throw new Error(`seat: expected a number from 0 to ${seats - 1}, got ${shown(seat)}`);
  }

  /** Return {over, reason, scores}: why the episode ended, and a number for each seat so far. */
  outcome() {
    return { over: this.over, ...this.game.own.outcome(this.#state) };
  }

  /** Return the episode so far as a game record, hidden cards included; Python's `verify` and `replay` read it. */
  record() {
    const { own, description } = this.game;
    return {
      game: description.name,
      version: description.version,
      options: own.optionsOf(this.#state),
      deal: own.dealText(this.#dealt),
      moves: this.moves,
      outcome: this.outcome(),
    };
  }

  /** Return a table with the same cards, for trying moves. */
  copy() {
    const copy = new Table(this.game, null);
    copy.#bytes = this.#bytes.slice();
    [copy.#given, copy.#dealt, copy.#moves] = [this.#given, [...this.#dealt], [...this.#moves]];
    return copy;
  }

  /**
   * Ask a player about the position: {move, moves}, the move that it would play, and all moves, best first.
   *
   * A player that searches says what it expects: `margin` by the end of the deal, in the game's `margin_unit`, the
   * `advantage` over the baseline, the `difference` to `move`, and the number of `worlds`; else they are null. These are
   * estimates; `judge` says what a move costs, with an error. Compare moves by `difference`; those that were `dropped`
   * early have rough figures.
   * A player knows no more than the seat to move: hidden cards are redrawn first. The same `seed`, 0 by default,
   * gives the same answer; `signal` stops it.
   */
  async advise(player, asking = {}) {
    const asked = this.copy(); // the answer is about this position, whatever is played meanwhile
    const { actions, values, legal } = await this.#ask(player, this.#checked(player, asking, 0));
    const column = (row, action) => values[row * this.game.description.actions + action];
    const orNull = (number) => (Number.isNaN(number) ? null : number);
    const known = (row, action) => orNull(column(row, action));
    const [best] = actions;
    const worlds = (action) => known(2, action) ?? 0;
    const moves = legal.map((action) => ({
      move: asked.#text(action),
      probability: Number(action === best),
      margin: known(0, action),
      worlds: worlds(action),
      advantage: known(1, action),
      difference: orNull(column(1, action) - column(1, best)),
      dropped: worlds(action) > 0 && worlds(action) < worlds(best),
    }));
    const rank = (one, other) => other.probability - one.probability || other.worlds - one.worlds || other.margin - one.margin;
    return { move: asked.#text(best), moves: moves.sort(rank) };
  }

  /**
   * Ask a player that searches what a move costs: {best, cost, error}, the move that it would play, how much better that
   * is in the game's `margin_unit`, and the standard error; both 0 where the moves come to the same.
   *
   * Both are played out in the same worlds, drawn afresh with `seed`, 0 by default; `signal` stops it.
   */
  async judge(player, move, asking = {}) {
    const { start, signal } = this.#checked(player, asking, 0);
    const { engine } = this.game;
    if (!engine.player(player).searches) throw new Error(`${player} does not search, so it can't judge`);
    const asked = this.copy(); // the answer is about this position, whatever is played meanwhile
    const given = [asked.#bytes, player, mix(start + 1n), this.#actionOf(move)];
    const { best, cost, error } = await thinker.ask(engine, "judge", given, signal);
    return { best: asked.#text(best), cost, error };
  }

  /** Return the move that a player plays, by default of a random `seed`. What it planned before is played on. */
  async choose(player, asking = {}) {
    const checked = this.#checked(player, asking);
    const seen = `${player} ${this.#sight()}`;
    const planned = this.#plans.get(seen);
    if (planned) return planned;
    const copy = this.copy(); // of the position that is asked about, whatever is played meanwhile
    const { actions } = await this.#ask(player, checked);
    const texts = actions.map((action, number) => {
      const text = copy.#text(action);
      if (number > 0) this.#plans.set(`${player} ${copy.#sight()}`, text);
      if (number < actions.length - 1) copy.play(text);
      return text;
    });
    return texts[0];
  }

  /** Return what the seat to move sees, as a text. */
  #sight() {
    return JSON.stringify([this.#state.seat, this.#legal(), Object.values(this.observation()).map((part) => [...part])]);
  }

  /** Return the seed, `usual` if none is given, and the signal of a question to a player that there is. */
  #checked(player, asking, usual) {
    this.game.engine.player(player);
    const { seed = usual, signal } = checkKeys(asking, ["seed", "signal"], player);
    return { start: seedOf(seed), signal: checkSignal(signal) };
  }

  async #ask(player, { start, signal }) {
    const { engine } = this.game;
    const legal = this.#legal();
    if (!legal.length) throw new Error("the game is over");
    const keys = [mix(start + 1n), mix(start + 2n)];
    const searches = engine.player(player).searches && legal.length > 1;
    const found = searches
      ? await thinker.ask(engine, "advise", [this.#bytes.slice(), player, keys], signal)
      : await engine.advise(this.#bytes, player, keys);
    return { ...found, legal };
  }
}
