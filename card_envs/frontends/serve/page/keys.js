// Keys that do what buttons do, wherever the focus is: those are told once, at the first table in a browser.

import { $ } from "./dom.js";
import { once } from "./kept.js";

const BUTTONS = { h: "hint", u: "undo" }; // while playing
const BACK = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" }; // while looking back
const TOLD = "Keys: H for a hint, U to undo, and the arrows when you look back.";

/** Press the button that a key stands for, unless the key means something else where the focus is. */
function press(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (event.target.closest("input, select, textarea, dialog, #log") || document.querySelector("dialog[open]")) return;
  const button = $(($("stepper").hidden ? BUTTONS : BACK)[event.key.length > 1 ? event.key : event.key.toLowerCase()]);
  if (!button?.checkVisibility()) return;
  event.preventDefault();
  button.click();
}

let isTold = false; // also where nothing can be kept

/** Return what there is to say about keys: nothing from the second time on, and where there are likely no keys. */
export function keysTold() {
  if (isTold || !matchMedia("(hover: hover) and (pointer: fine)").matches) return "";
  isTold = true;
  return once("keys") ? TOLD : "";
}

document.addEventListener("keydown", press);
for (const [key, id] of Object.entries({ ...BUTTONS, ...BACK })) $(id).setAttribute("aria-keyshortcuts", key);
