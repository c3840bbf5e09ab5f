// What a worker does: one request after the other.

import { Engine } from "./engine.js";

/** Return a function that answers a request, by `post`, which it tells first that it is ready. */
export function answerer(post) {
  const engines = new Map();

  async function answer({ name, place, question, given }) {
    try {
      if (!engines.has(name)) engines.set(name, Engine.open(name, place));
      const engine = await engines.get(name);
      post({ found: await engine[question](...given) });
    } catch (error) {
      engines.delete(name);
      post({ problem: error.message });
    }
  }

  post({ isReady: true });
  return answer;
}
