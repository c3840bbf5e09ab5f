// Links for friends: to a free seat of the table, and to watch it; with what each may see.

import { $, element } from "./dom.js";
import { keepLinks, keptLinks } from "./kept.js";

const MAY = {
  play: "Plays this seat, and sees its cards, as you see yours. Give it to one person only.",
  watch: "Sees the table, but no hands; once the game is over, all cards.",
  game: "Shows this game, move by move, with all cards. The link holds all of it: no server has to keep it.",
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
  open("Links for friends", ...free, entry("To watch", `#watch=${watch}`, MAY.watch));
}

function open(title, ...entries) {
  const alone = LOCAL.includes(location.hostname) ? [element("p", {}, NOBODY_ELSE, element("code", {}, FOR_OTHERS))] : [];
  $("links-title").textContent = title;
  $("linked").replaceChildren(...alone, ...entries);
  $("links").showModal();
}

/** Show a link that holds a finished game. */
export async function shareGame(record) {
  const bytes = await new Response(new Blob([JSON.stringify(record)]).stream().pipeThrough(new CompressionStream("deflate-raw"))).bytes();
  const text = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  open("A link to this game", entry("To look at it", `#game=${text}`, MAY.game));
}

/** Return the record of the game that such a link holds. */
export async function sharedGame(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
  } catch {
    throw new Error("This link holds no whole game: it may have been cut.");
  }
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
