// The form for a new game: which one, against whom, with which options.

import { HAS_LINKS } from "./ask.js";
import { $, count, element } from "./dom.js";
import { tally } from "./kept.js";

const BLANK = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E"; // until a picture comes
const ADVISER = "strong"; // who gives hints unless another one is chosen

const NUMBERS = 1_000_000; // of deals: few enough to be told to somebody

let games = []; // of the server

/** Return the number of some deal. */
export const anyNumber = () => Math.floor(Math.random() * NUMBERS);

/** Fill the form with these games; return whether all have a picture. `deals`: whether a deal may be chosen. */
export function offer(found, deals) {
  games = found;
  $("numbered").hidden = !deals;
  $("games").append(...games.map((one, number) => {
    const input = element("input", { type: "radio", name: "game", value: one.name, checked: number === 0 });
    const picture = element("img", { alt: "", src: BLANK });
    const words = element("span", {}, element("strong", {}, one.title), element("small", {}, facts(one)), element("small", {}, one.goal), element("small", { className: "tally" }));
    return element("label", {}, input, picture, words);
  }));
  choose();
  showTallies();
  return showPictures(found);
}

/** Show the pictures of games, and return whether all have one: those that a server still compiles have none. */
export function showPictures(found) {
  for (const { name, picture } of found) {
    const image = $("games").querySelector(`label:has([value="${name}"]) img`);
    if (picture && image.src === BLANK) image.src = `data:image/svg+xml,${encodeURIComponent(picture)}`;
  }
  return found.every(({ picture }) => picture);
}

/** Say beside each game how many were won, lost and drawn. */
export function showTallies() {
  for (const small of $("games").querySelectorAll(".tally")) {
    const { won, lost, drawn } = tally(small.closest("label").querySelector("input").value);
    small.textContent = won + lost + drawn ? `You won ${won} and lost ${lost}${drawn ? `; ${drawn} drawn` : ""}.` : "";
  }
}

/** How many play, and for how long. */
function facts({ seats, sides, minutes }) {
  const teams = new Set(sides).size;
  const players = count(seats, "player") + (teams > 1 && teams < seats ? ` in ${teams} teams` : "");
  return minutes ? `${players}, about ${count(minutes, "minute")}` : players;
}

/** Return the table that the form describes, as the server makes one. */
export function wanted() {
  const options = {};
  $("form").querySelectorAll("select[name^='option ']").forEach((select) => {
    const value = JSON.parse(select.value);
    if (value !== null) options[select.name.slice(7)] = value;
  });
  const number = $("deal").value === "" ? {} : { seed: Number($("deal").value) };
  return { game: chosen().name, options, players: [null, ...seats().map((select) => select.value || null)], ...number };
}

/** Return who gives hints in a game: in a solitaire, the player of the level that was chosen in the form. */
export function adviser(one) {
  const level = $("form").elements.level?.value;
  return one.seats === 1 && one === chosen() && level ? level : ADVISER;
}

/** The form for the chosen game. */
function choose() {
  const one = chosen();
  $("asking").textContent = one.seats === 1 ? "Who gives hints" : "How well the others play";
  $("others").hidden = one.seats === 1;
  $("levels").replaceChildren(...one.levels.map(({ name, player, strength }) => {
    const input = element("input", { type: "radio", name: "level", value: player, checked: player === ADVISER });
    return element("label", {}, input, element("span", {}, element("strong", {}, name), element("small", {}, strength)));
  }));
  $("seats").replaceChildren(...one.seat_names.slice(1).map((name) => {
    const friend = HAS_LINKS ? [element("option", { value: "" }, "a friend, by a link")] : [];
    const select = element("select", { name: "player" }, ...offered(one, one.levels[0]?.player), ...friend);
    return element("label", {}, element("span", {}, name), select);
  }));
  $("friendly").hidden = one.seats === 1 || !HAS_LINKS;
  level();
  const fields = one.choices.length ? one.choices.map(choiceField) : Object.entries(one.options.properties ?? {}).map(optionField);
  $("options").replaceChildren(...fields.filter(Boolean));
  $("more").hidden = !$("options").children.length && $("numbered").hidden;
}

/** Return the chosen game. */
export const chosen = () => games.find((one) => one.name === $("form").elements.game.value);

const seats = () => [...$("seats").querySelectorAll("select")];

/** Return players to choose from, those of the levels first. */
export function offered(one, selected) {
  const option = (name, text = name) => element("option", { value: name, selected: name === selected, title: one.about_opponents[name] }, text);
  const usual = one.levels.map(({ name, player, strength }) => option(player, strength ? `${name}: ${strength}` : name));
  const more = one.opponents.filter((name) => one.levels.every(({ player }) => player !== name));
  return [...usual, element("optgroup", { label: "more" }, ...more.map((name) => option(name)))];
}

/** Show which player sits in all other seats but those of friends, if it is that of a level, and what it is. */
function level() {
  const names = new Set(seats().map((select) => select.value).filter(Boolean));
  const inputs = [...$("levels").querySelectorAll("input")];
  if (names.size) for (const input of inputs) input.checked = names.size === 1 && names.has(input.value);
  const player = inputs.find((input) => input.checked)?.value;
  $("about").textContent = player ? `It ${chosen().about_opponents[player]}.` : "";
  $("friend").checked = seats().some((select) => !select.value);
}

function setLevel(event) {
  for (const select of seats()) if (select.value) select.value = event.target.value;
  level();
}

/** Give a seat to a friend, a partner's if there is one; or all seats of friends back to players. */
function setFriend(event) {
  const { sides, levels } = chosen();
  const partner = sides.slice(1).indexOf(sides[0]);
  if (event.target.checked) seats()[Math.max(0, partner)].value = "";
  else for (const select of seats()) select.value ||= $("form").elements.level.value || levels[0].player;
  level();
}

/** An option in the game's words; its first value is the default. */
function choiceField({ option, title, values }) {
  const select = element("select", { name: `option ${option}` });
  values.forEach(([value, words]) => select.append(element("option", { value: JSON.stringify(value) }, words)));
  return element("label", {}, title, select);
}

/** A choice among the values that an option's schema spells out; null where it spells out none. */
function optionField([name, schema]) {
  const kinds = schema.anyOf ?? [schema];
  const values = kinds.flatMap((kind) => kind.enum ?? ("const" in kind ? [kind.const] : kind.type === "boolean" ? [false, true] : []));
  if (!values.length) return null;
  const first = schema.default ?? null;
  const ordered = [first, ...values.filter((value) => value !== first)];
  const field = choiceField({ option: name, title: name, values: ordered.map((value) => [value, value === null ? "default" : String(value)]) });
  field.append(element("small", {}, schema.description ?? ""));
  return field;
}

$("games").addEventListener("change", choose);
$("levels").addEventListener("change", setLevel);
$("friend").addEventListener("change", setFriend);
$("seats").addEventListener("change", level);
