// Answers for players that search, so that the page goes on meanwhile.

import { answerer } from "./answerer.js";

const answer = answerer((message) => self.postMessage(message));
self.onmessage = (event) => answer(event.data);
