// Cards that move are seen to move: from where they lay in the drawing before to where they lie in the new one.

const TIME = 220; // milliseconds
const SAME = 1; // pixels: less is no move

const isStill = matchMedia("(prefers-reduced-motion: reduce)");

/** Return the cards of a drawing: where each is on the screen, what it shows, and in which place of the game it lies. */
const cardsIn = (drawing) => [...drawing.querySelectorAll("use")].map((use) => {
  const { left, top } = use.getBoundingClientRect();
  const group = use.closest("[data-place]");
  return { use, left, top, card: use.dataset.card, place: group?.dataset.place, label: group?.ariaLabel };
});

const away = (one) => (other) => Math.hypot(one.left - other.left, one.top - other.top);
const nearest = (one, others) => [...others].filter(({ card }) => card === one.card).sort((a, b) => away(one)(a) - away(one)(b))[0];

/**
 * Replace the drawing in `picture` by a new one, and let each card move from where it lay.
 *
 * A card that lay nowhere comes from a place with cards face down whose label has changed: it has fewer. Several cards that leave one place, as a
 * trick does, come together as they go.
 */
export function redraw(picture, drawing) {
  const last = picture.firstChild;
  const before = last?.getScreenCTM && !isStill.matches ? cardsIn(last) : [];
  const area = last?.getBoundingClientRect();
  picture.replaceChildren(drawing);
  const { width, height } = drawing.getBoundingClientRect();
  if (!before.length || !drawing.getScreenCTM?.() || width !== area.width || height !== area.height) return;
  const after = cardsIn(drawing);
  const isFace = ({ card }) => card;
  const [gone, come] = [new Set(before.filter(isFace)), new Set(after.filter(isFace))];
  const origins = new Map();
  const match = (isNear) => {
    for (const now of come) {
      const then = nearest(now, gone);
      if (!then || (isNear && away(now)(then) >= SAME)) continue;
      come.delete(now);
      gone.delete(then);
      if (!isNear) origins.set(now, then);
    }
  };
  match(true); // those that lie where they lay
  match(false);
  const labels = new Map([...drawing.querySelectorAll("[data-place]")].map((place) => [place.dataset.place, place.ariaLabel]));
  const faceDown = before.findLast(({ card, place, label }) => !card && labels.get(place) !== label);
  for (const now of come) origins.set(now, faceDown);
  const { a: scale } = drawing.getScreenCTM();
  for (const [now, then] of origins) if (then) arrive(drawing, now.use, shift(now, then, scale));
  const trick = [...gone].filter(({ place }, _, all) => all.filter((other) => other.place === place).length > 1);
  if (trick.length) gather(picture, last, trick, scale);
}

const shift = (from, to, scale) => `${(to.left - from.left) / scale}px ${(to.top - from.top) / scale}px`;

const fly = (use, frames) => use.animate(frames, { duration: TIME, easing: "ease-out", fill: "both" });

/** Let a card come to its place, above all others. */
function arrive(drawing, use, from) {
  const copy = use.cloneNode();
  copy.setAttribute("class", "flying");
  drawing.append(copy);
  use.style.opacity = 0;
  fly(copy, { translate: [from, "0px 0px"] }).onfinish = () => {
    copy.remove();
    use.style.removeProperty("opacity");
  };
}

/** Let cards of the drawing before come together and go: in what remains of it, above the new one. */
function gather(picture, last, trick, scale) {
  const middle = { left: 0, top: 0 };
  for (const side of ["left", "top"]) for (const one of trick) middle[side] += one[side] / trick.length;
  last.replaceChildren(...last.querySelectorAll("defs"), ...trick.map(({ use }) => use));
  last.setAttribute("class", "flying");
  last.removeAttribute("data-moves");
  picture.append(last);
  for (const one of trick) fly(one.use, { translate: ["0px 0px", shift(one, middle, scale)], opacity: [1, 0] }).onfinish = () => last.remove();
}
