/** A JSON object. */
export type Json = { [key: string]: unknown };

/** A player's estimate of a legal move; null where it has none. */
export interface ActionValue {
  move: string;
  probability: number;
  /** Expected by the end of the deal, in the game's `margin_unit`: an estimate, as all of these are. */
  margin: number | null;
  /** Number of worlds in which it was tried. */
  worlds: number;
  /** Mean difference to the baseline move in the same worlds. */
  advantage: number | null;
  /** Mean difference to the move that the player would play: moves compare by it. */
  difference: number | null;
  /** Whether the search gave the move up early: its figures are rough. */
  dropped: boolean;
}

/** What a move cost, in the game's `margin_unit`. */
export interface MoveCost {
  /** The move that the judge would play. */
  best: string;
  /** How much better that is; below 0 the move did better. */
  cost: number;
  /** Standard error of the cost; 0 where both moves come to the same by the rules. */
  error: number;
}

export interface Asking {
  /** Of the worlds that a player draws. The same seed gives the same answer. `choose`: random by default; else 0. */
  seed?: number | bigint;
  /** Stops this search, and no other one. */
  signal?: AbortSignal;
}

export interface Outcome {
  over: boolean;
  /** Why the episode ended; empty while it runs. */
  reason: string;
  scores: number[];
}

/** Everything needed to replay an episode; Python's `verify` and `replay` read it. */
export interface GameRecord {
  game: string;
  version: number;
  options: Json;
  deal: Json;
  moves: string[];
  outcome: Outcome;
}

export interface Field {
  name: string;
  offset: number;
  size: number;
  low: number;
  high: number;
  meaning: string;
}

export interface Description {
  name: string;
  title: string;
  version: number;
  seats: number;
  /** From a seat's perspective: itself first, then the others clockwise. */
  seat_names: string[];
  /** Of each seat; seats of one side win and lose together. */
  sides: number[];
  actions: number;
  observation: { size: number; fields: Field[] };
  /** JSON schema of the options. */
  options: Json;
  /** What a player tries to do, in a sentence. */
  goal: string;
  /** How long an episode takes a person; 0 if that is unknown. */
  minutes: number;
  /** Reasons of an end in words, for a person; {score} stands for the seat's; empty: the scores say it all. */
  ends: Record<string, string>;
  /** What positions ask by their legal moves alone: the first with a legal move, or without; `question` says more. */
  questions: [string, string[]][];
  /** What margins count: "points". */
  margin_unit: string;
  /** Moves in words, by their text: "play the queen of hearts"; those that are missing are in words already. */
  words: Record<string, string>;
  /** Parts of moves, each with its meaning. */
  legend: [string, string][];
  /** Options to offer to people, in words: values with their words, the default first. */
  choices: { option: string; title: string; values: [unknown, string][] }[];
  /** Names for `advise` and `choose`. */
  opponents: string[];
  /** What each of them is, in a few words. */
  about_opponents: Record<string, string>;
  /** Opponents for people, the easiest first; `strength`: "beats easy in 95 of 100 games", empty if unmeasured. */
  levels: { name: string; player: string; strength: string }[];
  /** Opponents that `judge` can ask. */
  judges: string[];
}

export interface Table {
  /** The seat to move; null after the end. */
  readonly seat: number | null;
  readonly over: boolean;
  /** What the last move paid each seat. */
  readonly rewards: number[];
  readonly moves: string[];
  /** The legal moves of the seat to move. */
  legal(): string[];
  /** Play a legal move, and deal if that is due. Throws an Error for any other. */
  play(move: string): void;
  /** All that a seat may know, as the protocol shows it; by default of the seat to move. */
  view(seat?: number): Json;
  /** What a seat is asked, in words for people; empty if it is not to move. */
  question(seat?: number): string;
  /** What a seat's legal moves come to, by their text, where it needs to be said: `{ 3: "together 4" }`. */
  moveNotes(seat?: number): Record<string, string>;
  /** The card that a legal move takes, where all see it and the move does not say it; else "". */
  movedCard(move: string): string;
  /** All that a seat may know as numbers, by the names of the observation's fields. */
  observation(seat?: number): Record<string, Int8Array>;
  outcome(): Outcome;
  record(): GameRecord;
  copy(): Table;
  /** Ask a player about all moves, best first, and the one that it would play. */
  advise(player: string, asking?: Asking): Promise<{ move: string; moves: ActionValue[] }>;
  /** What a move costs, in the opinion of a player that searches. */
  judge(player: string, move: string, asking?: Asking): Promise<MoveCost>;
  /** The move that a player plays; what it planned before is played on. */
  choose(player: string, asking?: Asking): Promise<string>;
}

export interface Game {
  readonly description: Description;
  /** Begin an episode. The same seed deals the same cards as in Python; `deal` is a custom deal. */
  deal(how?: { seed?: number | bigint; options?: Json; deal?: Json }): Table;
}

/** The names of the games. */
export const GAMES: readonly string[];

/** Load a game: "back_alley", "russian_bank" or "big_ben"; `base` is the folder with the compiled files. */
export function load(name: string, how?: { base?: string | URL }): Promise<Game>;
