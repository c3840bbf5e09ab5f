// Plays what Python played, game after game: node long.mjs FOLDER GAME FILE. tests/build/test_native.py writes the file.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import "../node/platform.js";
import { Engine } from "../engine.js";
import { reader } from "../layout.js";

const [folder, name, file] = process.argv.slice(2);
const engine = await Engine.open(name, { base: String(pathToFileURL(`${folder}/`)) });
const { actions, sums, every } = JSON.parse(readFileSync(file, "utf8"));
const bytes = Uint8Array.from(Buffer.from(engine.description.initial, "hex"));
const state = reader(engine.description.state)(bytes);
let episodes = 0;

actions.forEach((action, number) => {
  if (state.over) {
    engine.write(engine.keys, BigUint64Array.of(BigInt(episodes), 0n));
    engine.call(bytes, "begin", engine.keys);
    episodes += 1;
  }
  while (state.needs_deal) engine.call(bytes, "deal");
  engine.call(bytes, "play", action);
  if (number % every === 0) assert.equal(createHash("sha256").update(bytes).digest("hex"), sums[number / every]);
});
console.log(`${name}: ${actions.length} decisions of ${episodes} episodes`);
