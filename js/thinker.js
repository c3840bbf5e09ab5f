// Players that search think in a worker, one decision after the other.

import { platform } from "./platform.js";

/** Return a worker with `send`, `listen`, `hold` and `stop`. */
function newWorker() {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" }); // as bundlers want it written
  return {
    send: (message) => worker.postMessage(message),
    listen: (heard, failed) => {
      worker.onmessage = (event) => heard(event.data);
      worker.onerror = (event) => failed(new Error(event.message || "the worker could not be started"));
    },
    hold: () => {},
    stop: () => worker.terminate(),
  };
}

export class Thinker {
  #worker = null; // a promise
  #asked = new Map(); // by id
  #number = 0;

  /** Ask an engine's `advise` or `judge` in the worker. An aborted signal stops it; a new one is made later. */
  async ask(engine, question, given, signal) {
    signal?.throwIfAborted();
    this.#worker ??= this.#begin();
    const worker = await this.#worker;
    signal?.throwIfAborted();
    const id = this.#number;
    this.#number += 1;
    const stop = () => this.#end(signal.reason);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        this.#asked.set(id, { resolve, reject });
        worker.hold(true);
        worker.send({ id, name: engine.description.name, place: engine.place, question, given });
      });
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  async #begin() {
    const worker = (platform.newWorker ?? newWorker)();
    await new Promise((resolve, reject) => {
      const heard = ({ id, found, problem }) => {
        if (id < 0) return resolve();
        const waiting = this.#asked.get(id);
        this.#asked.delete(id);
        worker.hold(this.#asked.size > 0);
        if (problem === undefined) waiting?.resolve(found);
        else waiting?.reject(new Error(problem));
        return undefined;
      };
      worker.listen(heard, (error) => {
        reject(error);
        this.#end(error);
      });
    });
    return worker;
  }

  /** Stop the worker; what was asked fails with an error. */
  #end(error) {
    const worker = this.#worker;
    this.#worker = null;
    worker?.then((one) => one.stop(), () => {});
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
  }
}
