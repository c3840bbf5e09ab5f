// Every public function with what it can't take: an Error that says what would be right, and nothing changes. It needs
// what `make npm` builds, of any players.

import assert from "node:assert/strict";
import { test } from "node:test";

import { GAMES, load } from "card-envs";

const CIRCULAR = {};
CIRCULAR.self = CIRCULAR;
const ANYTHING = [null, true, 0, -1, 1.5, NaN, 5n, "", "x", "constructor", [], [1], {}, { x: 1 }, CIRCULAR];
ANYTHING.push(Object.create(null), Symbol("x"), () => 1, 10n ** 100n, new Date(), "x".repeat(1e6));
const OBJECT = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const EMPTY = (value) => OBJECT(value) && !Object.keys(value).length;

/** Call a function with all that it can't take; `takes` says what it can. */
async function refuses(where, call, takes = () => false) {
  for (const value of ANYTHING.filter((one) => !takes(one))) {
    const what = `${where}: ${typeof value}`;
    const refused = (error) => {
      assert.equal(error.constructor, Error, `${what}: ${error.stack}`);
      assert.match(error.message, /expected|there are: /, what);
      assert.ok(error.message.length < 2000, what);
      return true;
    };
    await assert.rejects(async () => call(value), refused, what);
  }
}

for (const name of GAMES) {
  test(name, async () => {
    const game = await load(name);
    const table = game.deal({ seed: 1 });
    const before = table.view();
    const [player] = game.description.opponents;
    const isSeat = (value) => Number.isInteger(value) && value >= 0 && value < game.description.seats;
    const isSeed = (value) => value === 0 || value === 5n;
    await refuses("load(game)", load);
    await refuses("load(…, how)", (how) => load(name, how), EMPTY);
    await refuses("base", (base) => load(name, { base }));
    await refuses("deal(how)", (how) => game.deal(how), EMPTY);
    await refuses("seed", (seed) => game.deal({ seed }), isSeed);
    await refuses("options", (options) => game.deal({ options }), EMPTY);
    for (const option of Object.keys(game.description.options.properties)) {
      const values = new Set(JSON.stringify(game.description.options.properties[option]).match(/[\w-]+/g));
      const takes = (value) => value === null || [true, 0, 1].includes(value) || values.has(value) || Array.isArray(value);
      await refuses(option, (value) => game.deal({ options: { [option]: value } }), takes);
    }
    await refuses("deal", (deal) => game.deal({ deal }));
    await refuses("play", (move) => table.play(move));
    await refuses("view", (seat) => table.view(seat), isSeat);
    await refuses("observation", (seat) => table.observation(seat), isSeat);
    for (const ask of ["advise", "choose"]) {
      await refuses(`${ask}(player)`, (value) => table[ask](value));
      await refuses(`${ask}(…, asking)`, (asking) => table[ask](player, asking), EMPTY);
      await refuses(`${ask}: seed`, (seed) => table[ask](player, { seed }), isSeed);
      await refuses(`${ask}: signal`, (signal) => table[ask](player, { signal }));
    }
    const { draw } = await import(`card-envs/draw/${name}.js`);
    await refuses("draw", draw);
    assert.deepEqual(table.view(), before);
    assert.match(draw(before), /^<svg/);
  });
}
