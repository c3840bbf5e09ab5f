// The package in Node.

import "./platform.js";

export * from "../index.js";
