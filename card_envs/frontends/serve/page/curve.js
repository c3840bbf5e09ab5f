// The curve of a review: what the judged moves have cost so far, falling from left to right, a dot where one clearly did.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 100; // of the drawing, in units of its own: it is stretched to the place there is
const EDGE = 10; // above and below the curve
const NEAR = 12; // pixels around a dot in which a click means its move

/** Draw `costs`, a list of `[at, cost, isClear]` by the number of moves before each, into `curve`; none empty it. */
export function drawCurve(curve, costs, numMoves) {
  curve.replaceChildren();
  if (!costs.length) return;
  curve.setAttribute("viewBox", `0 0 ${numMoves} ${HEIGHT}`);
  let sum = 0;
  const sums = costs.map(([, cost]) => (sum += cost));
  const [least, most] = [Math.min(0, ...sums), Math.max(1e-9, ...sums)];
  const y = (value) => (EDGE + ((HEIGHT - 2 * EDGE) * (value - least)) / (most - least)).toFixed(1);
  const steps = costs.map(([at], number) => `H${at + 0.5}V${y(sums[number])}`).join("");
  const line = `M0 ${y(0)}${steps}H${numMoves}`;
  add(curve, "lost", `${line}V${y(0)}Z`);
  add(curve, "line", line);
  costs.forEach(([at, , isClear], number) => {
    if (isClear) add(curve, "dot", `M${at + 0.5} ${y(sums[number])}h0`).dataset.at = at;
  });
  add(curve, "now", "");
}

/** Show which position is on the table. */
export function markCurve(curve, turn) {
  curve.querySelector(".now")?.setAttribute("d", `M${turn} 0V${HEIGHT}`);
}

/** Return the number of moves before the one that is clicked on: a dot's, if one is near. */
export function pointedAt(curve, event) {
  const { left, width } = curve.getBoundingClientRect();
  const scale = width / curve.viewBox.baseVal.width;
  const wanted = (event.clientX - left) / scale;
  const dots = [...curve.querySelectorAll(".dot")].map((dot) => Number(dot.dataset.at));
  const away = (at) => Math.abs(at + 0.5 - wanted);
  const [nearest] = dots.sort((one, other) => away(one) - away(other));
  return nearest !== undefined && away(nearest) * scale < NEAR ? nearest : Math.floor(wanted);
}

function add(curve, name, d) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("class", name);
  path.setAttribute("d", d);
  curve.append(path);
  return path;
}
