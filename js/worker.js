// Answers for players that search, so that the page goes on meanwhile: one request after the other.

import { Engine } from "./engine.js";

const inNode = typeof self === "undefined";
const port = inNode ? (await import("node:worker_threads")).parentPort : self;

const engines = new Map();

async function answer({ id, name, base, bytes, player, keys }) {
  try {
    if (!engines.has(name)) engines.set(name, Engine.open(name, new URL(base)));
    const engine = await engines.get(name);
    port.postMessage({ id, found: await engine.advise(bytes, player, keys) });
  } catch (error) {
    engines.delete(name);
    port.postMessage({ id, problem: error.message });
  }
}

if (inNode) port.on("message", answer);
else port.onmessage = (event) => answer(event.data);
port.postMessage({ id: -1 }); // ready
