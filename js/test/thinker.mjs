// Questions to players that search, with workers of the test's own: one question's end ends no other one.

import assert from "node:assert/strict";

import { platform } from "../platform.js";
import { Thinker } from "../thinker.js";

const workers = [];
platform.newWorker = () => {
  const worker = { sent: [], isHeld: true, isStopped: false };
  workers.push(worker);
  return {
    send: (message) => worker.sent.push(message.given[0]),
    listen: (heard, failed) => {
      Object.assign(worker, { answer: (found) => heard({ found }), fail: (problem) => heard({ problem }), heard, failed });
    },
    hold: (is) => (worker.isHeld = is),
    stop: () => (worker.isStopped = true),
  };
};
const turn = () => new Promise((done) => setTimeout(done, 1)); // everything that can go on has gone on
const begin = async (worker = workers.at(-1)) => {
  worker.heard({ isReady: true });
  await turn();
};
const engine = { description: { name: "game" }, place: {} };

/** Return questions with these names: what became of each, and how to stop it. */
function ask(thinker, ...names) {
  return names.map((player) => {
    const stop = new AbortController();
    const one = { stop: () => stop.abort(new Error(`${player} stopped`)), ended: "" };
    thinker.ask(engine, "advise", [player], stop.signal).then(
      (found) => (one.ended = found),
      (error) => (one.ended = error.message),
    );
    return one;
  });
}
const ended = (asked) => asked.map((one) => one.ended);

// One after the other; a question that is stopped before its turn leaves the worker alone.
let thinker = new Thinker();
let asked = ask(thinker, "a", "b", "c");
await turn();
await begin();
const [first] = workers;
assert.deepEqual(first.sent, ["a"]);
asked[1].stop();
await turn();
assert.deepEqual(ended(asked), ["", "b stopped", ""]);
assert.ok(!first.isStopped);
first.answer("found a");
await turn();
first.answer("found c");
await turn();
assert.deepEqual([first.sent, ended(asked)], [["a", "c"], ["found a", "b stopped", "found c"]]);
assert.ok(!first.isHeld && workers.length === 1);

// The worker that is at a stopped question ends; another one answers the rest, and late words are not taken for its.
asked = ask(thinker, "d", "e", "f");
await turn();
assert.ok(first.isHeld);
asked[0].stop();
asked[0].stop();
await turn();
assert.ok(first.isStopped && workers.length === 2);
first.answer("found d");
await begin();
first.answer("found d");
await turn();
assert.deepEqual([workers[1].sent, ended(asked)], [["e"], ["d stopped", "", ""]]);
workers[1].answer("found e");
await turn();
workers[1].fail("no f");
await turn();
assert.deepEqual(ended(asked), ["d stopped", "found e", "no f"]);
assert.ok(!workers[1].isHeld && !workers[1].isStopped);

// Stopped while the worker begins: it is not held for nothing, and answers anyone who comes next.
thinker = new Thinker();
asked = ask(thinker, "g");
await turn();
asked[0].stop();
await turn();
asked.push(...ask(thinker, "h"));
await begin();
assert.deepEqual([workers[2].sent, ended(asked)], [["h"], ["g stopped", ""]]);
workers[2].answer("found h");
await turn();
asked = ask(thinker, "i");
await turn();
asked[0].stop();
await turn();
assert.deepEqual([ended(asked), workers[2].isStopped, workers.length], [["i stopped"], true, 3]);
thinker = new Thinker();
asked = ask(thinker, "j");
await turn();
asked[0].stop();
await begin();
assert.ok(!workers[3].isHeld && !workers[3].sent.length);

// A worker that fails ends the question that it is at.
asked = ask(thinker, "k", "l");
await turn();
workers[3].failed(new Error("out of memory"));
await turn();
assert.deepEqual(ended(asked), ["out of memory", ""]);
await begin();
workers[4].answer("found l");
await turn();
assert.deepEqual(ended(asked), ["out of memory", "found l"]);
asked = ask(thinker, "m");
await turn();
workers[4].failed(new Error("again"));
await turn();
asked.push(...ask(thinker, "n", "o"));
await turn();
workers[5].failed(new Error("it can't begin"));
await turn();
assert.deepEqual(ended(asked), ["again", "it can't begin", ""]);
await begin();
workers[6].answer("found o");
await turn();
assert.deepEqual(ended(asked), ["again", "it can't begin", "found o"]);

// A signal that is aborted before asks nothing.
await assert.rejects(thinker.ask(engine, "advise", ["p"], AbortSignal.abort(new Error("no"))), /no/);
assert.ok(!workers[6].isHeld && workers.length === 7);
