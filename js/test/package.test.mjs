// The package as its users have it: npm test. It needs what `make npm` builds.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { load } from "card-envs";

for (const name of ["back_alley", "russian_bank", "big_ben"]) {
  test(`${name}: a whole game, and again from its record`, async () => {
    const game = await load(name);
    const strongest = game.description.opponents.filter((player) => ["strong", "champion"].includes(player));
    assert.deepEqual(strongest, ["strong", "champion"]);
    const table = game.deal({ seed: 1 });
    assert.deepEqual(table.view(), game.deal({ seed: 1n }).view());
    assert.notDeepEqual(table.view(), game.deal({ seed: 2 }).view());
    for (let number = 0; !table.over && number < 400; number += 1) {
      assert.ok(table.legal().length > 0);
      table.play(await table.choose("small", { seed: number }));
    }
    const { deal, moves, options } = table.record();
    const again = game.deal({ deal, options });
    moves.forEach((move) => again.play(move));
    assert.deepEqual(again.outcome(), table.outcome());
    assert.deepEqual(again.view(0), table.view(0));
  });

  test(`${name}: what players say`, async () => {
    const game = await load(name);
    const table = game.deal({ seed: 4 });
    table.play(table.legal().at(-1));
    for (const player of game.description.opponents) {
      const before = table.view();
      const [one, other] = await Promise.all([1, 1].map((seed) => table.advise(player, { seed })));
      assert.deepEqual(one, other);
      assert.deepEqual(await table.advise(player), await table.advise(player, { seed: 0 }));
      assert.deepEqual(one.moves.map(({ move }) => move).sort(), table.legal().sort());
      const [best, ...others] = one.moves;
      assert.equal(best.move, one.move);
      if (best.margin !== null) assert.deepEqual([best.difference, best.dropped], [0, false]);
      for (const { advantage, difference, dropped, worlds } of best.margin === null ? [] : others) {
        assert.equal(difference, advantage === null ? null : advantage - best.advantage);
        assert.equal(dropped, worlds > 0 && worlds < best.worlds);
      }
      assert.deepEqual(table.view(), before);
    }
  });

  test(`${name}: what moves cost`, async () => {
    const game = await load(name);
    const table = game.deal({ seed: 4 });
    table.play(table.legal().at(-1));
    const before = table.view();
    const costs = await Promise.all(table.legal().map((move) => table.judge("strong", move, { seed: 1 })));
    const [{ best }] = costs;
    assert.deepEqual(await table.judge("strong", best, { seed: 2 }), { best, cost: 0, error: 0 });
    assert.deepEqual(await table.judge("strong", table.legal()[0], { seed: 1 }), costs[0]);
    const [usual, zero] = [{}, { seed: 0 }].map((asking) => table.judge("strong", table.legal()[0], asking));
    assert.deepEqual(await usual, await zero);
    for (const one of costs) {
      assert.equal(one.best, best);
      assert.ok(Number.isFinite(one.cost) && one.error >= 0 && (one.error > 0 || one.cost === 0));
    }
    assert.ok(costs.some(({ error }) => error > 0));
    await assert.rejects(table.judge("small", best), /small does not search, so it can't judge/);
    await assert.rejects(table.judge("strong", "nothing"), /"nothing" is not a legal move now/);
    assert.deepEqual(table.view(), before);
  });

  test(`${name}: what is wrong is said`, async () => {
    const game = await load(name);
    const table = game.deal({ seed: 1 });
    assert.throws(() => table.play("nothing"), /"nothing" is not a legal move now; expected one of /);
    assert.throws(() => table.view(9), /seat: expected a number from 0/);
    assert.throws(() => game.deal({ seed: -1 }), /seed: expected a whole number/);
    assert.throws(() => game.deal({ options: { nothing: 1 } }), /unknown option "nothing"/);
    assert.throws(() => game.deal({ deal: {} }), /^Error: deal: expected/);
    await assert.rejects(table.advise("nobody"), /no player "nobody"; there are: trivial, /);
    assert.deepEqual(table.moves, []);
    const copy = table.copy();
    copy.play(copy.legal()[0]);
    assert.deepEqual([table.moves.length, copy.moves.length], [0, 1]);
  });
}

test("a search is stopped, and another one answers later", async () => {
  const game = await load("big_ben");
  const table = game.deal({ seed: 1 });
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error("enough")), 100);
  await assert.rejects(table.advise("champion", { signal: stop.signal }), /enough/);
  await assert.rejects(table.advise("champion", { signal: stop.signal }), /enough/);
  assert.ok((await table.advise("strong")).moves[0].worlds > 0);
});

test("an answer is about the position that was asked about, whatever is played meanwhile", async () => {
  for (const name of ["back_alley", "russian_bank", "big_ben"]) {
    const game = await load(name);
    for (const player of ["greedy", "small", "search-64", "strong"].filter((one) => game.description.opponents.includes(one))) {
      const [table, alone] = [0, 1].map(() => game.deal({ seed: 3 }));
      const expected = [await alone.choose(player, { seed: 1 }), await alone.advise(player, { seed: 1 })];
      const asked = [table.choose(player, { seed: 1 }), table.advise(player, { seed: 1 })];
      table.play(table.legal().at(-1));
      assert.deepEqual(await Promise.all(asked), expected);
      const next = await table.choose(player, { seed: 1 }); // not by a plan for another position
      assert.ok(table.legal().includes(next));
      table.play(next);
    }
  }
});

test("a signal ends one question, and others are answered", async () => {
  const game = await load("big_ben");
  const [one, other] = [1, 2].map((seed) => game.deal({ seed }));
  const expected = await other.advise("strong", { seed: 1 });
  for (const wait of [0, 50]) {
    const stop = new AbortController();
    const asked = [one.advise("champion", { signal: stop.signal }), other.advise("strong", { seed: 1 })];
    setTimeout(() => stop.abort(new Error("enough")), wait);
    await assert.rejects(asked[0], /enough/);
    assert.deepEqual(await asked[1], expected);
  }
});

test("the process ends, however the last question did", () => {
  const program = (wait) => `
    import { load } from "card-envs";
    const game = await load("big_ben");
    const stop = new AbortController();
    const asked = game.deal({ seed: 1 }).advise("champion", { signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), ${wait});
    await asked.catch(({ message }) => console.log(message));
  `;
  for (const wait of [0, 200]) {
    const how = { cwd: new URL(".", import.meta.url), timeout: 60_000 };
    const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program(wait)], how);
    assert.deepEqual([String(ended.stdout), ended.status], ["enough\n", 0]);
  }
});

test("a game that is not there", async () => {
  await assert.rejects(load("no_game"), /no_game/);
  for (const name of ["../secret", "constructor", null, undefined, 5, 5n, {}, ["big_ben"], Symbol("big_ben")]) {
    await assert.rejects(load(name), /^Error: game: no .*; there are: back_alley/);
  }
});
