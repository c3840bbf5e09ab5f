// The picture of a position: what can be taken where is in its `data-moves` and `data-place`. No game is named here.

import { $ } from "./dom.js";
import { redraw } from "./motion.js";

const SVG = "http://www.w3.org/2000/svg";
const NEAR = 24; // pixels around a place where a card may be dropped
const SHAKE = [0, -7, 7, -4, 4, 0].map((across) => ({ translate: `${across}px 0` })); // of a card that can't be moved

/** Draw a position. */
export function drawPicture({ picture }) {
  const drawing = new DOMParser().parseFromString(picture ?? "", "image/svg+xml").documentElement;
  ["style", "width", "height"].forEach((name) => drawing.removeAttribute(name));
  redraw($("picture"), document.importNode(drawing, true));
}

/** The legal moves: from place to place. */
export const gestures = () => JSON.parse($("picture").firstChild?.getAttribute("data-moves") || "{}");
export const placesOf = (name) => [...$("picture").querySelectorAll("[data-place]")].filter((one) => one.dataset.place === name);

/** A frame around the top card of a place, or around all of it where there is none. */
export function frame(group) {
  const card = topCard(group);
  const rect = document.createElementNS(SVG, "rect");
  rect.setAttribute("class", "mark");
  let box = { x: 0, y: 0, width: 100, height: 140 };
  if (card) rect.setAttribute("transform", card.getAttribute("transform"));
  else box = group.getBBox();
  for (const name of ["x", "y", "width", "height"]) rect.setAttribute(name, box[name]);
  rect.setAttribute("rx", 9);
  if (card) card.after(rect);
  else group.append(rect);
  return rect;
}

export const topCard = (group) => [...group.querySelectorAll("use")].pop();

/** What a place is called, without the cards that lie there; several of a name by what they have in common. */
export function labelOfPlace(name) {
  const found = placesOf(name).map((one) => one.getAttribute("aria-label"));
  if (!found.length) return name;
  return found.length > 1 ? found[0].split(" ")[0] : found[0].split(":")[0];
}

/** The move from a place to where a double click sends its card. */
export function homeward(name) {
  const home = $("picture").firstChild.dataset.home;
  return Object.entries(gestures()).find(([, [source, target]]) => source === name && target === home)?.[0];
}

export const isAt = (name, event) => placesOf(name).some((group) => {
  const box = group.getBoundingClientRect();
  return event.clientX > box.left - NEAR && event.clientX < box.right + NEAR && event.clientY > box.top - NEAR && event.clientY < box.bottom + NEAR;
});

/** Shake what lies at a place. */
export function shake(name) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const group of placesOf(name)) group.animate(SHAKE, 300);
}
