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
  #began = null; // the worker, once it listens
  #jobs = []; // the worker is at the first one, or about to be
  #isWorking = false;
  #current = null; // settles what the worker is at

  /** Ask an engine's `advise` or `judge` in the worker. An aborted signal ends this question, and no other one. */
  async ask(engine, question, given, signal) {
    signal?.throwIfAborted();
    const job = { asked: { name: engine.description.name, place: engine.place, question, given } };
    const stop = () => this.#drop(job, signal.reason);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        this.#jobs.push(Object.assign(job, { resolve, reject }));
        if (!this.#isWorking) this.#work();
      });
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Let the worker answer one question after the other. */
  async #work() {
    this.#isWorking = true;
    while (this.#jobs.length) {
      const [job] = this.#jobs;
      try {
        job.resolve(await this.#answer(job));
      } catch (error) {
        job.reject(error);
      }
      this.#remove(job);
    }
    this.#began?.hold(false);
    this.#isWorking = false;
  }

  async #answer(job) {
    this.#worker ??= this.#begin();
    const worker = await this.#worker;
    if (!this.#jobs.includes(job)) return undefined; // dropped while the worker began
    return new Promise((resolve, reject) => {
      this.#current = { resolve, reject };
      worker.hold(true);
      worker.send(job.asked);
    });
  }

  async #begin() {
    const worker = (platform.newWorker ?? newWorker)();
    await new Promise((ready, failed) => {
      const heard = ({ isReady, found, problem }) => {
        if (isReady) ready();
        else if (worker !== this.#began) return; // the last words of one that was stopped
        else if (problem === undefined) this.#settle("resolve", found);
        else this.#settle("reject", new Error(problem));
      };
      worker.listen(heard, (error) => {
        failed(error);
        this.#end(error);
      });
    });
    this.#began = worker;
    return worker;
  }

  #settle(how, value) {
    this.#current?.[how](value);
    this.#current = null;
  }

  #remove(job) {
    this.#jobs = this.#jobs.filter((one) => one !== job);
  }

  /** Drop a question. If the worker is at it, it is stopped; there will be another one for the next question. */
  #drop(job, reason) {
    const isCurrent = this.#current !== null && job === this.#jobs[0];
    this.#remove(job);
    job.reject(reason);
    if (isCurrent) this.#end(reason);
  }

  /** Stop the worker; the question that it is at fails with an error. */
  #end(error) {
    this.#began?.stop();
    this.#worker = this.#began = null;
    this.#settle("reject", error);
  }
}
