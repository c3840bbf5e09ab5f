// Answers the page's requests as a server does, but plays here: one table, kept so that a reload comes back to it.

import { GAMES, load } from "../index.js";

// In localStorage, which all pages of an origin share: the name ends with this one's folder.
const KEPT = `card_envs table ${new URL("..", import.meta.url).pathname}`;

export const HAS_LINKS = false; // nobody else can come to a table of this page

const loaded = new Map();
let kept = null; // the table
let opened = null; // the record of a saved game

/** Return a game, loaded once. */
function gameOf(name) {
  if (!GAMES.includes(name)) throw new Error(`game: no '${name}'; there are: ${GAMES.join(", ")}`);
  if (!loaded.has(name)) loaded.set(name, load(name));
  return loaded.get(name);
}

/** An episode with the moves so far. */
class Episode {
  constructor(table) {
    Object.assign(this, { table, played: [] });
  }

  /** Return an episode after some moves; `where` names them in errors. */
  static after(game, how, moves, where) {
    const episode = new Episode(game.deal(how));
    moves.forEach((move, number) => {
      if (episode.over) throw new Error(`${where}.${number}: the game is over before it`);
      try {
        episode.play(move);
      } catch (error) {
        throw new Error(`${where}.${number}: ${error.message}`);
      }
    });
    return episode;
  }

  get over() {
    return this.table.outcome().reason !== "";
  }

  get moves() {
    return this.played.map(({ move }) => move);
  }

  play(move) {
    const { seat } = this.table;
    const card = this.table.legal().includes(move) ? this.table.movedCard(move) : "";
    this.table.play(move);
    this.played.push({ seat, move, card });
  }

  /** Return what a seat may see, with the moves from number `since` on. */
  position(game, seat, players, since = this.played.length) {
    const { reason, scores } = this.table.outcome();
    return {
      game,
      seat,
      players,
      turn: this.played.length,
      moves: this.played.slice(since),
      your_turn: !this.over && this.table.seat === seat,
      view: this.table.view(seat),
      question: this.table.question(seat),
      move_notes: this.table.moveNotes(seat),
      outcome: { over: this.over, reason, scores },
      can_undo: false,
      problem: null,
    };
  }
}

/** The table of a person and players of the package. */
class SeatedTable {
  #thinking = new AbortController();

  /** Sit down; `header` has game, options, players (null for the person), seed, token and moves. */
  static async open(header) {
    const table = new SeatedTable();
    const game = await gameOf(header.game);
    Object.assign(table, { header, game, seat: header.players.indexOf(null), playing: null, problem: null });
    table.episode = table.after(header.moves);
    return table;
  }

  get token() {
    return this.header.token;
  }

  /** Let the others play until it is the person's turn or the game is over. */
  turn() {
    this.playing ??= this.#play(this.#thinking.signal).finally(() => (this.playing = null));
    return this.playing;
  }

  async #play(signal) {
    const { episode, header } = this;
    try {
      while (!episode.over && episode.table.seat !== this.seat && !signal.aborted) {
        const { seat } = episode.table;
        const seed = header.seed + episode.played.length;
        const move = await episode.table.choose(header.players[seat], { seed, signal });
        if (signal.aborted) return;
        episode.play(move);
        this.keep();
      }
    } catch (error) {
      if (!signal.aborted) this.problem = error.message;
    }
  }

  move(text) {
    if (this.episode.over || this.episode.table.seat !== this.seat) throw new Error("it is not your turn");
    this.episode.play(text);
    this.keep();
  }

  /** Return the number of moves to go back to so that the person may move differently; -1 if there is none. */
  get lastOwn() {
    return this.episode.over ? -1 : this.episode.played.findLastIndex(({ seat }) => seat === this.seat);
  }

  async undo() {
    if (this.lastOwn < 0) throw new Error("nothing can be taken back here");
    const moves = this.episode.moves.slice(0, this.lastOwn);
    const thinking = this.#thinking;
    this.#thinking = new AbortController();
    this.problem = null;
    this.episode = this.after(moves);
    this.keep();
    thinking.abort();
    await this.playing; // of the episode before
  }

  after(moves) {
    const { seed, options } = this.header;
    return Episode.after(this.game, { seed, options }, moves, "moves");
  }

  /** Keep the table for a reload, unless the browser's storage is full or forbidden. */
  keep() {
    try {
      localStorage.setItem(KEPT, JSON.stringify({ ...this.header, moves: this.episode.moves }));
    } catch {
      // it is played on all the same
    }
  }

  leave() {
    this.#thinking.abort();
  }

  position(since) {
    const { header, seat, problem } = this;
    const found = this.episode.position(header.game, seat, header.players, since);
    return { ...found, can_undo: this.lastOwn >= 0, problem };
  }
}

/** Return what is in localStorage; null if that is nothing, or damaged. */
function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

/** Return the table of a token, from localStorage if it is not in memory. */
async function tableOf(token) {
  if (kept?.token === token) return kept;
  const header = stored();
  if (header?.token !== token) throw new Error("no such seat, or the table is gone");
  kept?.leave();
  kept = await SeatedTable.open(header);
  return kept;
}

/** Return the episode of a record after some of its moves, or all. */
async function recorded(record, at) {
  if (!Array.isArray(record?.moves)) throw new Error("record: moves: expected the moves of a game");
  const game = await gameOf(record.game);
  if (record.version !== game.description.version) {
    throw new Error(`record: version: ${record.version}; these are the rules of version ${game.description.version}`);
  }
  const { options, deal, moves } = record;
  return Episode.after(game, { seed: 0, options, deal }, moves.slice(0, at), "record: moves");
}

/** Return a seed of deals that a JSON number can be. */
function newSeed() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low;
}

/** Return the picture of a view for a shape of screen. */
async function pictureOf(name, view, shape) {
  const { draw } = await import(`../draw/${name}.js`);
  return draw(view, shape === "tall");
}

/** Throw an Error if a request is about another position than the one at the table. */
function checkTurn(table, turn) {
  if (turn !== table.episode.played.length) throw new Error("the table has gone on meanwhile; nothing was done");
}

/** Return the table of an episode at which a seat sees this view. Throws an Error if it is another one by now. */
function tableWith(view, { table }) {
  if (JSON.stringify(table.view(view.seat)) === JSON.stringify(view)) return table;
  throw new Error("the table has gone on meanwhile");
}

const number = (text) => (text === undefined ? undefined : Number(text));

// By the last part of the path, or the one before a token: (body, query, token, signal) => reply.
const REPLIES = {
  async games(body, { picture }) {
    const games = await Promise.all(GAMES.map(gameOf));
    const first = (game) => pictureOf(game.description.name, game.deal({ seed: 0 }).view(), picture);
    const described = async (game) => ({ ...game.description, ...(picture && { picture: await first(game) }) });
    return { version: 1, deals: true, games: await Promise.all(games.map(described)) };
  },

  async rules(body, query, name) {
    return { rules: await (await fetch(new URL(`../games/${name}.md`, import.meta.url))).text() };
  },

  async tables({ game, options, players, seed = newSeed() }) {
    kept?.leave();
    kept = await SeatedTable.open({ game, options, players, seed, token: newSeed().toString(36), moves: [] });
    kept.keep();
    return { game, seats: [{ seat: kept.seat, token: kept.token }] };
  },

  async seats(body, { wait, since, at }, token) {
    const table = await tableOf(token);
    const { header, seat, episode } = table;
    if (at !== undefined) {
      return table.after(episode.moves.slice(0, Number(at))).position(header.game, seat, header.players, number(since));
    }
    const playing = table.turn();
    if (Number(wait)) await playing;
    return table.position(number(since));
  },

  async moves({ move, turn, wait }, query, token) {
    const table = await tableOf(token);
    checkTurn(table, turn);
    table.move(move);
    const playing = table.turn();
    if (wait) await playing;
    return table.position(turn);
  },

  async undo(body, query, token) {
    const table = await tableOf(token);
    checkTurn(table, body.turn ?? table.episode.played.length);
    await table.undo();
    return table.position();
  },

  async record(body, query, token) {
    return (await tableOf(token)).episode.table.record();
  },

  async advise({ game, opponent, view }, query, token, signal) {
    const { moves } = await tableWith(view, kept.episode).advise(opponent, { signal });
    return { game, opponent, seat: kept.seat, moves };
  },

  async judge({ game, opponent, view, move }, { at, file }, token, signal) {
    const past = Number(at);
    const episode = file === undefined ? kept.after(kept.episode.moves.slice(0, past)) : await recorded(opened, past);
    const table = tableWith(view, episode);
    return { game, opponent, seat: table.seat, ...(await table.judge(opponent, move, { signal })) };
  },

  async replay({ record, seat, at, since }) {
    const episode = await recorded(record, at);
    opened = record;
    const { description } = await gameOf(record.game);
    return episode.position(record.game, seat, description.seat_names.map(() => null), since);
  },
};

if (globalThis.navigator?.serviceWorker) navigator.serviceWorker.register(new URL("../sw.js", import.meta.url));

/**
 * Return the reply that a server would give, a position with a picture if the path asks for one.
 *
 * What would be in the query may also stand behind a #. `signal` stops a player that thinks.
 */
export async function ask(path, body, signal) {
  const [place, text] = path.split(/[?#]/);
  const query = Object.fromEntries(new URLSearchParams(text));
  const [, kind, token, what] = place.split("/");
  const found = await REPLIES[what ?? kind](body, query, token, signal);
  return query.picture && found.view ? { ...found, picture: await pictureOf(found.game, found.view, query.picture) } : found;
}
