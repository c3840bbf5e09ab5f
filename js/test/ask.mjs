// Plays on the page's answers, with the game in core.js as the package's.

import assert from "node:assert/strict";

const store = new Map();
globalThis.localStorage = {
  getItem: (key) => store.get(key) ?? null,
  setItem: (key, value) => store.set(key, value),
};

/** Return the page's `ask` as a reload finds it. */
let loads = 0;
const reloaded = async () => (await import(`../page/ask.js?${(loads += 1)}`)).ask;

let ask = await reloaded();
const { games } = await ask("v1/games");
assert.deepEqual(games.map(({ name }) => name), ["back_alley", "big_ben", "russian_bank"]);

const sit = async (players) => {
  const made = await ask("v1/tables", { game: "big_ben", options: {}, players, undo: true });
  return made.seats[0].token;
};
const moves = (position) => position.moves.map(({ seat, move }) => `${seat}${move}`);

let token = await sit([null, "greedy"]);
let position = await ask(`v1/seats/${token}?wait=0`);
assert.equal(position.turn, 0);
assert.deepEqual([position.question, position.move_notes], ["1 or 2?", { 1: "makes 1", 2: "makes 2" }]);
assert.ok(position.your_turn && !position.can_undo && position.problem === null && !position.outcome.over);

position = await ask(`v1/seats/${token}/moves`, { move: "1", turn: 0, wait: 10 });
assert.deepEqual(moves(position), ["01", "12"]);
assert.deepEqual(position.moves.map(({ card }) => card), ["1C", "2C"]);
assert.ok(position.your_turn && position.can_undo);
await assert.rejects(ask(`v1/seats/${token}/moves`, { move: "1", turn: 0 }), /gone on/);
await assert.rejects(ask(`v1/seats/${token}/moves`, { move: "3", turn: 2 }), /not a legal move/);
await assert.rejects(ask("v1/seats/other?wait=0"), /no such seat/);

const advised = await ask("v1/advise", { game: "big_ben", opponent: "greedy", view: position.view, seconds: 2 });
assert.deepEqual(advised.moves.map(({ move }) => move), ["2", "1"]);

// While the other one thinks, nobody plays for it; taking back stops it.
position = await ask(`v1/seats/${token}/moves`, { move: "2", turn: 2, wait: 0 });
assert.ok(!position.your_turn);
await assert.rejects(ask(`v1/seats/${token}/moves`, { move: "2", turn: 3 }), /not your turn/);
const seen = await ask(`v1/seats/${token}?at=2`);
const judge = { game: "big_ben", opponent: "greedy", view: seen.view, move: "2" };
assert.equal((await ask("v1/judge#at=2", judge)).best, "2");
await assert.rejects(ask(`v1/seats/${token}/undo`, { turn: 2 }), /gone on/);
position = await ask(`v1/seats/${token}/undo`, {});
assert.deepEqual([position.turn, position.view.sum, position.your_turn], [2, 3, true]);
await assert.rejects(ask(`v1/seats/${token}/undo`, { turn: 3 }), /gone on/);

// What is asked about a position that was taken back is not answered about another one.
position = await ask(`v1/seats/${token}/undo`, { turn: 2 });
position = await ask(`v1/seats/${token}/moves`, { move: "2", turn: 0, wait: 10 });
await assert.rejects(ask("v1/judge#at=2", judge), /gone on/);
await assert.rejects(ask("v1/advise", judge), /gone on/);
position = await ask(`v1/seats/${token}/undo`, { turn: 2 });
position = await ask(`v1/seats/${token}/moves`, { move: "1", turn: 0, wait: 10 });
assert.equal((await ask("v1/judge#at=2", judge)).best, "2");

ask = await reloaded();
position = await ask(`v1/seats/${token}?wait=0`);
assert.deepEqual([position.turn, position.view.sum], [2, 3]);
assert.deepEqual(moves(await ask(`v1/seats/${token}?at=1&since=0`)), ["01"]);

while (!position.outcome.over) {
  const { turn } = position;
  await ask(`v1/seats/${token}/moves`, { move: "2", turn, wait: 0 });
  position = await ask(`v1/seats/${token}?wait=20&since=${turn}`);
}
assert.ok(!position.can_undo && !position.your_turn);
await assert.rejects(ask(`v1/seats/${token}/undo`, {}), /taken back/);

const record = await ask(`v1/seats/${token}/record`);
const replayed = await ask("v1/replay", { record, seat: 1, at: 2 });
assert.deepEqual([replayed.turn, replayed.view.sum, replayed.seat], [2, 3, 1]);
assert.ok((await ask("v1/replay", { record, seat: 0 })).outcome.over);
const replay = (changed) => ask("v1/replay", { record: { ...record, ...changed }, seat: 0 });
await assert.rejects(replay({ version: 9 }), /^Error: record: version: 9/);
await assert.rejects(replay({ game: "chess" }), /no 'chess'/);
await assert.rejects(replay({ moves: [...record.moves, "1"] }), /^Error: record: moves\.\d+: the game is over/);
await assert.rejects(replay({ moves: ["1", "7"] }), /^Error: record: moves\.1: '7' is not/);
await assert.rejects(replay({ moves: 3 }), /^Error: record: moves/);

// Other pages of the origin have tables of their own; what is damaged is no table.
const [key] = store.keys();
assert.equal(key, `card_envs table ${new URL("..", import.meta.url).pathname}`);
for (const damaged of ["{", "null", "5", '"x"', "[]"]) {
  store.set(key, damaged);
  ask = await reloaded();
  await assert.rejects(ask(`v1/seats/${token}?wait=0`), /no such seat/);
}

// The others begin; one of them fails.
token = await sit(["greedy", null]);
assert.deepEqual(moves(await ask(`v1/seats/${token}?wait=20&since=0`)), ["02"]);
token = await sit(["broken", null]);
assert.equal((await ask(`v1/seats/${token}?wait=20&since=0`)).problem, "broken failed");

// Where nothing can be kept, it is played all the same: without room, and without site data.
globalThis.localStorage.setItem = () => {
  throw new Error("QuotaExceededError");
};
for (let way = 0; way < 2; way += 1) {
  ask = await reloaded();
  token = await sit([null, "greedy"]);
  position = await ask(`v1/seats/${token}/moves`, { move: "1", turn: 0, wait: 10 });
  assert.deepEqual(moves(position), ["01", "12"]);
  assert.equal((await ask(`v1/seats/${token}/undo`, {})).turn, 0);
  await assert.rejects(ask("v1/seats/other?wait=0"), /no such seat/);
  Object.defineProperty(globalThis, "localStorage", {
    get() {
      throw new Error("SecurityError");
    },
  });
}
