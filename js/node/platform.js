// Node's part: `file:` URLs are read from disk, and players think in a thread.

import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";

import { platform } from "../platform.js";

const { bytesAt } = platform;

platform.bytesAt = async (url) => {
  const { protocol } = new URL(url);
  return protocol === "file:" ? new Uint8Array(await readFile(new URL(url))) : bytesAt(url);
};

/** A process does not end while it holds a worker. */
platform.newWorker = () => {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { execArgv: [] }); // none such as --input-type
  return {
    send: (message) => worker.postMessage(message),
    listen: (heard, failed) => worker.on("message", heard).on("error", failed),
    hold: (is) => (is ? worker.ref() : worker.unref()),
    stop: () => worker.terminate(),
  };
};
