// Stands in for ../index.js: two players add 1 or 2 in turn, and who reaches 10 wins.

const GOAL = 10;

class Table {
  constructor(game, seed, moves = []) {
    Object.assign(this, { game, seed, moves: [] });
    moves.forEach((move) => this.play(move));
  }

  get sum() {
    return this.moves.reduce((sum, move) => sum + Number(move), 0);
  }

  get seat() {
    return this.moves.length % 2;
  }

  get needsDeal() {
    return this.sum >= GOAL;
  }

  legal() {
    return this.needsDeal ? [] : ["1", "2"];
  }

  play(move) {
    if (!this.legal().includes(move)) throw new Error(`'${move}' is not a legal move`);
    this.moves.push(move);
  }

  view(seat) {
    return { seat, sum: this.sum, legal: seat === this.seat ? this.legal() : [] };
  }

  question(seat) {
    return seat === this.seat && !this.needsDeal ? "1 or 2?" : "";
  }

  moveNotes(seat) {
    return Object.fromEntries(this.view(seat).legal.map((move) => [move, `makes ${this.sum + Number(move)}`]));
  }

  movedCard(move) {
    return `${move}C`;
  }

  outcome() {
    const scores = [0, 1].map((seat) => Number(this.needsDeal && seat !== this.seat));
    return { reason: this.needsDeal ? "won" : "", scores };
  }

  record() {
    const outcome = { over: this.needsDeal, ...this.outcome() };
    return { game: this.game, version: 0, options: {}, deal: { seed: this.seed }, moves: this.moves, outcome };
  }

  async choose(preset, asking) {
    if (!Number.isSafeInteger(asking.seed)) throw new Error("a reopened table would not know its moves again");
    return (await this.advise(preset, asking)).move;
  }

  async advise(preset, { seed = 0, signal } = {}) {
    await new Promise((done) => setTimeout(done, 1));
    signal?.throwIfAborted();
    if (preset === "broken" || !Number.isSafeInteger(seed)) throw new Error(`${preset} failed`);
    return { move: "2", moves: ["2", "1"].map((move) => ({ move, margin: null, probability: 0.5 })) };
  }

  async judge(preset, move, asking = {}) {
    const { move: best } = await this.advise(preset, asking);
    return { best, cost: Number(move !== best), error: 0 };
  }
}

export const GAMES = ["back_alley", "big_ben", "russian_bank"];

/** Return a game with any name. */
export async function load(name) {
  const seats = { seat_names: ["you", "other"], seats: 2 };
  return {
    description: { name, title: name, version: 0, options: {}, opponents: ["greedy"], ...seats },
    deal: ({ seed, deal }) => new Table(name, deal?.seed ?? seed),
  };
}
