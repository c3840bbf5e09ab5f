// Links for friends: to a free seat of the table, and to watch it; with what each may see.

import { $, element } from "./dom.js";
import { keepLinks, keptLinks } from "./kept.js";

const MAY = {
  play: "Plays this seat, and sees its cards, as you see yours. Give it to one person only.",
  watch: "Sees who plays, the moves and the scores, but no hands; once the game is over, all cards.",
};

const LOCAL = ["localhost", "127.0.0.1", "[::1]"];
const NOBODY_ELSE = "Only this computer reaches the page at this address. Stop the server, start it for others, and open the page by this computer's name: ";
const FOR_OTHERS = "python -m card_envs serve --host 0.0.0.0";

/** Keep the links of a table that was made: for each other person's seat, and to watch. */
export function keepInvitation({ seats: [own, ...others], watch }) {
  keepLinks({ of: own.token, seats: others.map(({ seat, token }) => ({ seat, token })), watch: watch?.token });
}

/** Return the links that the seat of a token may give to friends; null if there are none, as without a server. */
export function linksOf(token) {
  const links = keptLinks();
  return token && links?.of === token && links.watch ? links : null;
}

/** Show the links of a table; `nameOf(seat)` says where a seat is. */
export function showLinks({ seats, watch }, nameOf) {
  const free = seats.map(({ seat, token }) => entry(`To play as ${nameOf(seat)}`, `#${token}`, MAY.play));
  const alone = LOCAL.includes(location.hostname) ? [element("p", {}, NOBODY_ELSE, element("code", {}, FOR_OTHERS))] : [];
  $("linked").replaceChildren(...alone, ...free, entry("To watch", `#watch=${watch}`, MAY.watch));
  $("links").showModal();
}

function entry(title, hash, may) {
  const address = new URL(hash, location.href.split("#")[0]).href;
  const input = element("input", { type: "text", readOnly: true, value: address, ariaLabel: title });
  const copy = element("button", { type: "button", ariaLabel: `Copy the link: ${title}` }, "Copy");
  input.addEventListener("focus", () => input.select());
  copy.addEventListener("click", async () => {
    input.select(); // where the browser does not let a page copy, the person can
    await navigator.clipboard?.writeText(address).then(() => (copy.textContent = "Copied"), () => {});
  });
  return element("div", {}, element("strong", {}, title), element("div", { className: "row" }, input, copy), element("small", {}, may));
}
