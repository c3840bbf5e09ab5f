// Answers for players that search, in a thread.

import { parentPort } from "node:worker_threads";

import "./platform.js";
import { answerer } from "../answerer.js";

parentPort.on("message", answerer((message) => parentPort.postMessage(message)));
