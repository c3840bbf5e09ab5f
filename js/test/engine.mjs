// Compares a game's module with what Python did: node engine.mjs FOLDER GAME FILE. Each line of the file is a case;
// tests/build/test_native.py writes it.

import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import "../node/platform.js";
import { Engine } from "../engine.js";

const [folder, name, file] = process.argv.slice(2);
const engine = await Engine.open(name, { base: String(pathToFileURL(`${folder}/`)) });
const { description } = engine;
const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const ROWS = ["means", "advantages", "worlds"];
let count = 0;

async function checkPlayer({ state, player, keys, action, values }) {
  const found = await engine.advise(bytes(state), player, keys.map(BigInt));
  assert.equal(found.actions[0], action, `${player} at case ${count}`);
  if (!values || found.values.every(Number.isNaN)) return;
  ROWS.forEach((row, number) => {
    const got = found.values.subarray(number * description.actions, (number + 1) * description.actions);
    got.forEach((value, one) => {
      const expected = values[row][one] ?? NaN;
      const isClose = Math.abs(value - expected) <= 1e-12 * Math.abs(expected);
      assert.ok(isClose || (!value && !expected), `${player}: ${row} of ${one}: ${value}, not ${expected}`);
    });
  });
}

async function checkCost({ state, player, key, played, best, cost, error }) {
  const found = await engine.judge(bytes(state), player, BigInt(key), played);
  assert.equal(found.best, best, `${player} at case ${count}`);
  for (const [value, expected] of [[found.cost, cost], [found.error, error]]) {
    assert.ok(Math.abs(value - expected) <= 1e-12 * Math.abs(expected), `${player}: ${value}, not ${expected}`);
  }
}

function checkRules({ state, legal, dealt, action, played, seat, observation, text }) {
  const at = bytes(state);
  engine.call(at, "legal", engine.mask);
  assert.deepEqual([...engine.at(Int8Array, engine.mask, legal.length)], legal);
  if (dealt !== undefined) {
    engine.call(at, "deal");
    assert.deepEqual(at, bytes(dealt));
    return;
  }
  engine.call(at, "observe", seat, engine.observation);
  assert.deepEqual([...engine.at(Int8Array, engine.observation, observation.length)], observation);
  assert.equal(description.texts[engine.call(at, "text", action)], text);
  assert.deepEqual(at, bytes(state));
  assert.throws(() => engine.call(at, "play", legal.indexOf(0)), /not legal/);
  engine.call(at, "play", action);
  assert.deepEqual(at, bytes(played));
}

for await (const line of createInterface({ input: createReadStream(file) })) {
  const known = JSON.parse(line, (key, value) => value);
  if (known.damaged) await assert.rejects(engine.ready(known.damaged), /the file is damaged, or of another version$/);
  else if (known.best !== undefined) await checkCost(known);
  else if (known.player) await checkPlayer(known);
  else checkRules(known);
  count += 1;
}
console.log(count);
