// Compares what JavaScript makes of States with what Python made of them: node same.mjs FILE. Each line of the file is
// a case; the first says which game it is. tests/build/test_js.py writes it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

import { reader } from "../layout.js";
import { written } from "../draw/picture.js";
import { cardOf, newState, notesOf, questionOf, viewOf } from "../views.js";

const lines = createInterface({ input: createReadStream(process.argv[2]) })[Symbol.asyncIterator]();
const { game: name, layout } = JSON.parse((await lines.next()).value);
const game = await import(`../games/${name}.js`);
const { draw } = await import(`../draw/${name}.js`);
const read = reader(layout);
const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const elements = (svg) => svg.replace(/<defs>.*<\/defs>/, "").split(/(?=<)/);

/** Return the place that an error names, or the packs. */
function parsed(state, deal) {
  try {
    return game.parseDeal(state, deal).map((pack) => [...pack]);
  } catch (error) {
    return error.message.split(": ")[0];
  }
}

const checks = {
  numbers({ numbers }) {
    for (const [number, text] of numbers) assert.equal(written(number), text, String(number));
  },
  position({ state: packed, seat, legal, view, questions, question, notes, cards, svg, outcome, pack }) {
    const raw = bytes(packed);
    const state = read(raw);
    const seen = viewOf(game, state, seat, legal);
    assert.deepEqual(seen, view);
    assert.equal(questionOf(game, questions, seen), question);
    assert.deepEqual(notesOf(game, seen), notes);
    assert.deepEqual(seen.legal.map((move) => cardOf(game, seen, move)), cards);
    assert.deepEqual(game.outcome(state), outcome);
    assert.deepEqual([...game.dealtPack(state)], pack);
    svg.forEach(([sum, shown], tall) => {
      const drawn = draw(seen, Boolean(tall));
      const expected = elements(shown);
      elements(drawn).forEach((element, number) => assert.equal(element, expected[number]));
      assert.equal(createHash("sha256").update(drawn).digest("hex"), sum);
    });
    // As it lies in a library's memory.
    for (const start of [8, 13]) {
      const memory = new Uint8Array(raw.length + 24);
      memory.set(raw, start);
      assert.deepEqual(game.view(read(memory, start), seat), game.view(state, seat));
    }
  },
  options({ options, state: packed, made }) {
    const blank = newState(game, layout, read, options);
    assert.deepEqual(blank, bytes(packed));
    const state = read(blank);
    assert.deepEqual(game.optionsOf(state), made);
    assert.throws(() => newState(game, layout, read, { ...options, reward: "none" }), /options: reward/);
    assert.throws(() => newState(game, layout, read, { ...options, toString: 1 }), /options: unknown option/);
  },
  deal({ state: packed, deal, expected }) {
    const state = read(bytes(packed));
    assert.deepEqual(parsed(state, deal), expected);
    if (typeof expected !== "string") {
      const again = game.dealText(game.parseDeal(state, deal));
      assert.deepEqual(parsed(state, again), expected);
    }
  },
};

const counts = {};
for await (const line of lines) {
  const { kind, ...rest } = JSON.parse(line);
  counts[kind] = (counts[kind] ?? 0) + 1;
  try {
    checks[kind](rest);
  } catch (error) {
    console.error(`${kind} ${counts[kind]}: ${line.slice(0, 200)}`);
    throw error;
  }
}
console.log(JSON.stringify(counts));
