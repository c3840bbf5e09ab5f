// Switches that are remembered: codes of moves as small print, and moves that play by themselves where there is no choice.

import { $ } from "./dom.js";
import { keepSwitch, keptSwitch } from "./kept.js";

export const isOn = (id) => $(id).checked;

for (const id of ["codes", "forced"]) {
  const show = () => document.body.classList.toggle(id, isOn(id));
  $(id).checked = keptSwitch(id);
  $(id).addEventListener("change", () => {
    keepSwitch(id, isOn(id));
    show();
  });
  show();
}
