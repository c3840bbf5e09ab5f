// Waiting for a server that has just started and still compiles its games.

import { $, element } from "./dom.js";

const AGAIN = 2000; // milliseconds, after which it is asked again

const pause = () => new Promise((done) => setTimeout(done, AGAIN));

/**
 * Return what `work` finds, which is asked again for as long as the server is busy; the page says with what.
 *
 * `goesOn()` says whether it is still wanted; once it isn't, undefined is returned.
 */
export async function patiently(work, goesOn) {
  try {
    while (goesOn()) {
      try {
        return await work();
      } catch (error) {
        if (error.code !== "busy") throw error;
        const why = error.message.replace(/; .*/, "");
        const long = why.startsWith("compiling") ? " A game takes up to a minute, once on each computer." : "";
        if (goesOn()) say(`The server is busy: ${why}.${long} The game begins by itself.`);
      }
      await pause();
    }
    return undefined;
  } finally {
    if (goesOn()) say("");
  }
}

function say(text) {
  $("busy").replaceChildren(text, element("progress", {}));
  $("busy").hidden = !text;
}

/** Call `work` again and again until it returns true; what goes wrong in between is left to the next time. */
export async function until(work) {
  for (;;) {
    await pause();
    if (await work().catch(() => false)) return;
  }
}
