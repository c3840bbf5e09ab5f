// Plays any game of the server: what can be taken where is in `data-moves` and `data-place` of the pictures, all else
// in the protocol's positions. No game is named here.

import { ask } from "./ask.js";
import { $, count, element } from "./dom.js";
import { counted, hintLegend, ranked, unpriced, worth } from "./hints.js";
import { keepInvitation, linksOf, shareGame, sharedGame, showLinks } from "./invite.js";
import { countGame, forget, keep, keepNumber, keptToken, numberOf } from "./kept.js";
import { keysTold } from "./keys.js";
import { list, markMove, onMove } from "./log.js";
import { clearReview, costOf, judgement, markReview, onCost, review, takeBack } from "./review.js";
import { patiently, until } from "./patience.js";
import { drawPicture, frame, gestures, homeward, isAt, labelOfPlace, placesOf, shake, topCard } from "./picture.js";
import { rulesInTwo } from "./rules.js";
import { isOn } from "./switches.js";
import { playersOf, seatName, showPlayers, watch } from "./watch.js";
import { capital, cardName, codeOf, did, doneBy, dressed, inShort, orderOf, saysCode } from "./words.js";
import { adviser, anyNumber, chosen, offer, offered, showPictures, showTallies, wanted } from "./start.js";

const DRAG = 8; // pixels, from which on a touch is a drag
const DOUBLE = 500; // milliseconds between the two of a double click
const MOST_SAID = 8; // of the last moves
const WATCH = "watch="; // begins the hash of a link to watch
const GAME = "game="; // and of one to a finished game
const WAIT = 20; // seconds for the others, before asking again
const GLANCE = 1; // the same where friends play, who are seen to move one by one
const LONGEST = 8000; // milliseconds in which the moves of the others are shown: many pass quicker

let games = []; // of the server
let deals = false; // whether it deals by numbers
let game = null; // the one at the table
let token = ""; // of the seat; empty while a file is stepped through
let watched = ""; // token of the table that is watched, also once its game is over
let record = null; // of a file, or of the finished game
let live = null; // the newest position
let shown = null; // the position in the picture
let atHand = 0; // the move in question there, counted from 1: the one that led there, or the judged one that follows
let picked = ""; // the place that a card is to be taken from
let pickedAt = 0; // when that was touched
let held = ""; // the place that last had the focus; empty: one of the moves
let waitingSince = 0; // when a wait for others, or for a hint, began; 0: there is none
let thinking = null; // stops the hint that is asked for
let played = []; // the moves that are listed
let epoch = 0; // changes with each table and where moves are taken back, so that answers about what was are dropped

// The server

const shape = () => (window.innerHeight > window.innerWidth ? "tall" : "wide");

const drawn = (path, query = {}) => `${path}?${new URLSearchParams({ picture: shape(), ...query })}`;
const seatPath = (query) => drawn(`v1/seats/${token}`, query);

/** A position of the game at the table, or in the file. */
function positionAt(at) {
  return token ? ask(seatPath({ at })) : ask(drawn("v1/replay"), { record, seat: Number($("seat").value || 0), at });
}

function fail(error) {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

/** Run something that talks to the server; what goes wrong is shown. */
async function attempt(work) {
  $("problem").hidden = true;
  const begun = epoch;
  try {
    return await work();
  } catch (error) {
    if (begun === epoch) fail(error);
    return undefined;
  }
}

// The start

async function begin() {
  await attempt(async () => {
    const listed = async () => (await ask(drawn("v1/games", { picture: "wide" }))).games;
    ({ games, deals } = await ask(drawn("v1/games", { picture: "wide" })));
    $("title").textContent = document.title = nameOfPage();
    if (!offer(games, deals)) until(async () => showPictures(await listed()));
    if (location.hash.length > 1) await arrive(location.hash.slice(1));
    else await offerUnfinished();
  });
}

/** What the start is called: after its game, if there is only one. */
const nameOfPage = () => (games.length === 1 ? games[0].title : "Card games");

/** Show the button that goes on with the unfinished game, if there is one. */
async function offerUnfinished() {
  $("unfinished").hidden = true;
  const kept = keptToken();
  if (!kept) return;
  try {
    const { game: name, outcome } = await ask(`v1/seats/${kept}?wait=0`);
    if (outcome.over) return void forget(kept);
    $("on").textContent = `Go on with ${games.find((one) => one.name === name).title}`;
    $("unfinished").hidden = false;
  } catch (error) {
    if (error.code === "unknown") forget(kept);
  }
}

async function play(event) {
  event.preventDefault();
  await make(wanted());
}

/** Sit down at a new table, in the seat `own`. */
async function make(table, own = 0) {
  clear();
  await attempt(async () => {
    const now = epoch;
    const number = deals && isAlone(table) ? { seed: anyNumber() } : {}; // friends could try all of them
    const wanted = { ...number, ...table, undo: isAlone(table), watch: "public" };
    const made = await patiently(() => ask("v1/tables", wanted), () => now === epoch);
    if (!made) return;
    made.seats.sort((one, other) => (other.seat === own) - (one.seat === own));
    keepInvitation(made);
    keepNumber(made.seats[0].token, wanted.seed);
    await sit(made.seats[0].token, !isAlone(table));
  });
}

/** Play the same game against the same players; with friends, everybody moves a seat on. */
function again() {
  const { seat, players, view: { options } } = live;
  if (isAlone(live)) return make({ game: game.name, options, players }, seat);
  return make({ game: game.name, options, players: [...players.slice(1), players[0]] }, (seat || players.length) - 1);
}

const isAlone = ({ players }) => players.filter((one) => one === null).length < 2;

/** Go to where a link leads: to a seat, to watch, or to a finished game. */
async function arrive(hash) {
  if (hash.startsWith(WATCH)) await lookOn(hash.slice(WATCH.length));
  else if (hash.startsWith(GAME)) await replay(await sharedGame(hash.slice(GAME.length)), epoch);
  else await sit(hash);
}

/** Watch a table; once its game is over, it is stepped through. */
async function lookOn(secret) {
  const path = `v1/watch/${secret}`;
  const goesOn = () => watched === secret;
  const look = (query) => patiently(() => ask(drawn(path, query)), goesOn);
  watched = secret;
  const isOver = await watch(look, (found) => {
    live = shown = { ...found, seat: 0, turn: found.turn ?? 0 };
    if (!isWatching()) openTable(live);
    $("table").dataset.state = "watched";
    $("table").classList.add("watching");
    stepping(false);
    listMoves(live);
    markMove(live.turn);
    if (found.picture) drawPicture(found);
    else showPlayers(found, game.levels);
    $("question").textContent = found.picture ? playersOf(found, game.levels) : "";
    $("status").replaceChildren(...(found.problem ? [found.problem] : played.slice(-game.seats).reverse().flatMap(told)));
  }, goesOn);
  if (!isOver) return;
  const ended = await ask(`${path}/record`);
  await replay(ended, epoch, ended.moves.length);
}

/** Take the seat of a token; the address keeps it, so that a reload comes back to the table. */
async function sit(found, withLinks = false) {
  const now = epoch;
  token = found;
  putAddress();
  const position = await patiently(() => ask(seatPath({ wait: 0, since: 0 })), () => now === epoch);
  if (now !== epoch) return;
  openTable(position);
  $("table").focus({ preventScroll: true });
  const playing = follow(position);
  if (withLinks) showLinks(linksOf(token), nameOf);
  await playing;
}

/** Put the table at hand into the address and the history; not as a relative address, for a page may have a base. */
function putAddress() {
  if (location.hash !== `#${token}`) history.pushState(null, "", `${location.pathname}#${token}`);
}

function openTable(position) {
  $("table").classList.remove("watching");
  game = games.find((one) => one.name === position.game);
  if (token) keep(token);
  $("title").textContent = game.title;
  document.title = game.title;
  $("start").hidden = true;
  $("table").hidden = $("leave").hidden = false;
  window.scrollTo(0, 0);
  $("log").replaceChildren();
  played = [];
  $("paced").hidden = $("save").hidden = $("moves").hidden = !token;
  $("chair").hidden = Boolean(token);
  $("invite").hidden = !linksOf(token);
  const number = numberOf(token);
  $("number").textContent = Number.isInteger(number) ? `deal ${number}` : "";
  $("judge").textContent = token ? "Review my moves" : "Review the moves";
  $("picture").replaceChildren(); // what comes has not moved from there
  $("adviser").replaceChildren(...offered(game, adviser(game)));
  stepping(!token);
}

/** Forget the table at hand. */
function clear() {
  epoch += 1;
  thinking?.abort(new Error("Stopped."));
  clearReview();
  token = picked = watched = "";
  $("table").classList.remove("watching");
  live = shown = record = null;
  played = [];
}

/** Whether a game would be left before its end. */
const isRunning = () => Boolean(token && live && !live.outcome.over);

/** Ask whether to leave a running game. */
function isSure() {
  $("sure").returnValue = "";
  $("sure").showModal();
  return new Promise((done) => $("sure").addEventListener("close", () => done($("sure").returnValue === "leave"), { once: true }));
}

/** Follow the browser's history: to a table, or back to the start. */
async function travel() {
  const found = location.hash.slice(1);
  if (found === token && !isWatching()) return;
  if (isRunning()) {
    putAddress();
    if (!$("sure").open) await leave();
  } else if (found) {
    clear();
    await attempt(() => arrive(found));
  } else {
    await leave();
  }
}

async function leave() {
  if (isRunning() && !(await isSure())) return;
  clear();
  history.replaceState(null, "", location.pathname);
  $("title").textContent = document.title = nameOfPage();
  $("table").hidden = $("leave").hidden = $("problem").hidden = true;
  $("start").hidden = false;
  $("form").querySelector("button[type=submit]").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  showTallies();
  await offerUnfinished();
}

// A saved game

async function open() {
  const [file] = $("file").files;
  $("file").value = "";
  if (!file) return;
  clear();
  await attempt(async () => {
    const now = epoch;
    try {
      record = JSON.parse(await file.text());
    } catch {
      throw new Error(`${file.name}: no game record: no JSON`);
    }
    await replay(record, now);
  });
}

/** Step through a record, from its beginning or after the first `at` moves, unless something else was begun since. */
async function replay(found, now, at = 0) {
  const { moves } = await ask("v1/replay", { record: found, seat: 0, since: 0 });
  const position = await ask(drawn("v1/replay"), { record: found, seat: 0, at });
  if (now !== epoch) return;
  record = found;
  live = { ...position, moves, turn: found.moves.length };
  openTable(position);
  listMoves(live);
  $("seat").replaceChildren(...game.seat_names.map((_, seat) => element("option", { value: seat }, seatName(seat))));
  $("chair").hidden = game.seats === 1;
  show(position);
}

// Playing

/** Show a position, and wait for the others until it is this seat's turn. */
async function follow(position, steps = []) {
  const isNew = live && !live.outcome.over && position.outcome.over;
  live = position;
  if (isNew) countGame(game.name, OUTCOMES[verdict(position)]);
  listMoves(position);
  const now = epoch;
  const pace = () => Math.min(Number($("pace").value), LONGEST / (steps.length + 1));
  const pause = () => new Promise((done) => setTimeout(done, pace()));
  for (const at of steps) {
    if (!pace() || isBack()) break;
    const [between] = await Promise.all([positionAt(at), pause()]);
    if (now !== epoch) return;
    show(between, true);
  }
  if (steps.length && pace() && !isBack()) await pause();
  if (now !== epoch) return;
  if (isBack() && shown.turn <= position.turn) show(shown, false, atHand); // at rest, though the game goes on
  else show(position);
  const forced = position.your_turn && !isBack() && playsItself(position);
  if (forced) setTimeout(() => now === epoch && live === position && !isBack() && move(forced), Number($("pace").value));
  if (position.your_turn || position.outcome.over || position.problem) return;
  const since = position.turn;
  const wait = isAlone(position) ? WAIT : GLANCE;
  let later;
  do {
    later = await ask(seatPath({ wait, since }));
    if (now !== epoch) return;
  } while (later.turn === since && !later.problem);
  await follow(later, between(since, later.turn));
}

/** List a position's moves; what was asked and judged about moves that it takes back is dropped. */
function listMoves({ turn, moves }) {
  const now = [...played.slice(0, turn - moves.length), ...moves];
  const changed = played.findIndex((one, number) => one.seat !== now[number]?.seat || one.move !== now[number].move);
  const same = changed < 0 ? played.length : changed;
  played = now;
  list(same, now.slice(same), written);
  if (changed < 0) return;
  epoch += 1;
  takeBack(same);
}

/** The positions after the first of some moves, but for the last. */
const between = (since, turn) => Array.from({ length: Math.max(0, turn - since - 1) }, (_, i) => since + 1 + i);

/** The move that a position plays by itself, if that is wanted: the only one, or the first of a patience that only has moves home. */
function playsItself({ view: { legal }, picture }) {
  if (!isOn("forced")) return undefined;
  const { moves = "{}", home } = new DOMParser().parseFromString(picture, "image/svg+xml").documentElement.dataset;
  const goesHome = game.seats === 1 && home && Object.values(JSON.parse(moves)).every(([, target]) => target === home);
  return legal.length === 1 || goesHome ? legal[0] : undefined;
}

/** Ask for something at the table, and show what comes of it, or else where the table is. */
async function act(what, body, then) {
  const seat = token;
  busy(true);
  const done = (work) => attempt(async () => (await work(), true));
  if (await done(async () => then(await ask(drawn(`v1/seats/${seat}/${what}`), body)))) return;
  if (token === seat && !(await done(async () => follow(await ask(seatPath({ since: 0 })))))) busy(false);
}

function move(text) {
  const { turn } = live;
  return act("moves", { move: text, turn, wait: isAlone(live) ? 10 : 0 }, (reply) => follow(reply, between(turn, reply.turn)));
}

const undo = () => act("undo", { turn: live.turn }, async (reply) => {
  let back = reply; // to where there was a choice, or else the same move would be played again
  while (playsItself(back) && back.can_undo) back = await ask(drawn(`v1/seats/${token}/undo`), { turn: back.turn });
  await follow(back);
  $("status").prepend("Taken back. ");
});

async function hint() {
  const [now, { turn, view }, { judges }, stop] = [epoch, live, game, new AbortController()];
  thinking = stop;
  busy(true);
  await attempt(async () => {
    const asked = { game: game.name, opponent: $("adviser").value, view, seconds: 2 };
    const { moves } = await ask("v1/advise", asked, stop.signal);
    const prices = new Map();
    for (const { move: text } of judges.includes(asked.opponent) ? unpriced(moves) : []) {
      prices.set(text, await ask(`v1/judge#at=${turn}`, { ...asked, move: text }, stop.signal));
    }
    if (now === epoch && live.turn === turn && shown === live && !isBack()) showAdvice(ranked(moves, prices), prices);
  });
  if (thinking === stop) thinking = null;
  if (live) busy(false);
}

/** Mark the best of the moves, in the adviser's order, and say on each other why it is not; `prices` are a judge's, by move. */
function showAdvice(moves, prices) {
  const [best] = moves;
  const buttons = new Map([...$("moves").children].map((button) => [button.dataset.move, button]));
  const reasons = moves.map((one) => [one, ...worth(game, one, best, prices.get(one.move))]);
  for (const [one, short, long] of reasons) {
    const button = buttons.get(one.move);
    button.querySelector("small")?.remove();
    if (short) button.append(figure(short));
    button.classList.toggle("best", one === best);
    button.title = [titleOf(one.move), long].filter(Boolean).join(": ");
  }
  buttons.get(best.move).scrollIntoView({ block: "nearest" });
  for (const name of gestures()[best.move] ?? []) {
    const groups = placesOf(name);
    if (groups.length !== 1) continue; // such as foundations: which of them takes the card is not told
    groups[0].classList.add("advised");
    if (!groups[0].querySelector(".mark")) frame(groups[0]);
  }
  const [next, , why] = reasons.find(([one, , long]) => one !== best && long) ?? [];
  const rest = moves.length === 1 ? "There is no other move." : best.margin === null ? "" : "The others look less good.";
  $("status").textContent = `${capital(inWords(best.move))}.`;
  $("question").textContent = next ? `Next best: ${inWords(next.move)}, ${why}.` : rest || question(shown, true);
}

/** A figure of a hint on a move: for the eye, since the button's title says it at length. */
function figure(short) {
  const made = element("small", { ariaHidden: "true" });
  made.dataset.worth = short;
  return made;
}

/** Show how long a wait has lasted, and the button that ends one for a hint. */
function tick() {
  const waits = !$("table").hidden && (thinking || $("table").dataset.state === "waiting");
  waitingSince = waits ? waitingSince || performance.now() : 0;
  const seconds = waits ? Math.floor((performance.now() - waitingSince) / 1000) : 0;
  $("clock").textContent = seconds ? `${seconds} s` : "";
  $("stop").hidden = !(thinking && seconds);
}

async function save() {
  await attempt(async () => {
    const saved = await ask(`v1/seats/${token}/record`);
    const address = URL.createObjectURL(new Blob([`${JSON.stringify(saved, null, 1)}\n`], { type: "application/json" }));
    element("a", { href: address, download: `${game.name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });
}

function busy(is) {
  if (is && $("moves").contains(document.activeElement)) { // which can't keep the focus
    held = "";
    $("table").focus({ preventScroll: true });
  }
  for (const button of $("moves").children) button.disabled = is;
  if (is) for (const id of ["hint", "undo"]) grey(id, "One moment.");
  else tools();
  $("picture").classList.toggle("waiting", is);
}

function tools() {
  const { outcome, your_turn: mine, can_undo: can, players } = live;
  const alone = players.filter((one) => one === null).length < 2;
  grey("hint", outcome.over ? "The game is over." : mine ? "" : "It is not your turn yet.");
  grey("undo", can ? "" : outcome.over ? "The game is over: nothing can be taken back." : !alone ? "Where friends play, nothing is taken back." : "You have no move to take back yet.");
  grey("save", outcome.over ? "" : "The record shows all cards, so it can be saved once the game is over.");
  for (const id of ["hint", "undo"]) $(id).hidden = !token || isBack();
  $("step").hidden = !token;
  $("judge").hidden = !isBack();
}

/** Make a button grey for a reason, which touching it tells; without one it works. */
function grey(id, reason) {
  $(id).setAttribute("aria-disabled", String(Boolean(reason)));
  $(id).title = reason;
}

/** Call a function when a button is pressed; a grey one says why it is grey. */
function pressed(id, work) {
  $(id).addEventListener("click", () => {
    if ($(id).getAttribute("aria-disabled") === "true") $("status").textContent = $(id).title;
    else work();
  });
}

// The rules

/** Show the goal, the rules, in short and in full, what hints mean, and how moves are written. */
async function help() {
  const one = $("table").hidden ? chosen() : game;
  if (!one) return;
  $("rules-title").textContent = one.title;
  const table = (title, entries) => {
    if (!entries.length) return [];
    const terms = entries.flatMap(([code, meaning]) => [element("dt", {}, ...code), element("dd", {}, meaning)]);
    return [element("h3", {}, title), element("dl", {}, ...terms)];
  };
  const hints = table("Hints", hintLegend(one.margin_unit).map(([code, meaning]) => [[code], meaning]));
  const codes = table("How moves are written", one.legend.map(([code, meaning]) => [[code], meaning]));
  const moves = $("table").hidden || !isActive() ? [] : Object.keys(gestures());
  codes.push(...table("Your moves now", moves.map((text) => [dressed(text), noted(text, inWords(text))]).filter(([code, words]) => words !== code[0])));
  const goal = one.goal ? [element("p", {}, element("strong", {}, one.goal))] : [];
  $("text").replaceChildren(...goal, ...hints, ...codes);
  $("rules").showModal();
  const { rules } = await attempt(() => ask(`v1/games/${one.name}/rules`)) ?? {};
  const { short, long } = rulesInTwo(rules ?? "");
  if (rules) $("text").replaceChildren(...goal, ...short, ...hints, element("h3", {}, "The rules in full"), ...long, ...codes);
  $("rules").scrollTop = 0;
}

// What is shown

/** Show a position; `hand` is the move in question there, by default the judged one that follows or else the last one. */
function show(position, passing = false, hand = position.turn + Number(isBack() && costOf(position.turn) !== undefined)) {
  const focus = document.activeElement;
  const isInside = focus === $("table") || $("picture").contains(focus) || $("moves").contains(focus) || $("after").contains(focus);
  if (isInside && focus !== $("table")) held = focus.closest("[data-place]")?.dataset.place ?? "";
  shown = position;
  atHand = hand;
  picked = "";
  drawPicture(position);
  const active = token && position === live && position.your_turn && !passing && !isBack();
  $("moves").replaceChildren(...(active ? moveButtons() : []));
  mark();
  markCost();
  $("status").replaceChildren(...(passing ? said(position) : status(position)));
  if (active) $("status").append(" ", keysTold());
  fit();
  $("question").textContent = isBack() ? "" : question(position, active);
  $("after").hidden = !token || !isEnd(position) || isBack();
  $("again").textContent = isAlone(position) ? "Play again" : "Rematch, seats changed";
  $("asked").classList.toggle("won", !isBack() && isEnd(position) && verdict(position) === "You won");
  if (live.outcome.over) forget(token);
  $("table").dataset.state = active ? "yours" : isEnd(position) ? "over" : passing || position === live ? "waiting" : "back";
  $("at").max = live.turn;
  $("at").value = position.turn;
  markMove(atHand);
  markReview(position.turn, live.turn);
  tools();
  if (isInside) refocus();
}

/** Put the focus back where it was; while nothing there can be chosen, on the table. */
function refocus() {
  const { firstChild: first } = $("moves");
  const places = [...$("picture").querySelectorAll("[data-place][tabindex]")];
  const place = places.find((one) => one.dataset.place === held) ?? places[0];
  const wanted = held && first ? place ?? first : first ?? ($("after").hidden ? $("table") : $("review"));
  wanted.focus({ preventScroll: true });
}

const isActive = () => Boolean($("moves").children.length);

/** The buttons of the legal moves, in the order in which their cards lie in the picture. */
function moveButtons() {
  const places = [...$("picture").querySelectorAll("[data-place]")].map((one) => one.dataset.place);
  const order = (text) => places.indexOf(gestures()[text][0]) + 1 || places.length + 1;
  const texts = Object.keys(gestures()).sort((one, other) => order(one) - order(other));
  const inWordsOf = texts.map(inWords);
  const faces = inShort(inWordsOf);
  return texts.map((text, number) => {
    const words = inWordsOf[number];
    return isClear(words, text) ? moveButton(text, text, dressed(text)) : moveButton(text, words, faces[number], codeOf(words, text));
  });
}

/** A button for a move: its face, which says it in `words`, what it comes to unless they say that, and its code as small print. */
function moveButton(text, words, face, code = []) {
  const note = noted(text, words).slice(words.length);
  const notes = note ? [element("span", { className: "note" }, note)] : [];
  const button = element("button", { type: "button", title: titleOf(text) }, ...face, ...notes, ...code);
  button.dataset.move = text;
  button.addEventListener("click", () => move(text));
  return button;
}

/** Frames around what can be taken, or, once a card is picked, around where it can go. */
function mark() {
  $("picture").querySelectorAll(".mark").forEach((one) => one.remove());
  for (const group of $("picture").querySelectorAll("[data-place]")) {
    group.classList.remove("can", "picked", "target", "advised");
    group.removeAttribute("tabindex");
    group.setAttribute("role", "img");
  }
  if (!isActive()) return;
  const moves = Object.values(gestures());
  const sources = new Set(moves.map(([source]) => source).filter(Boolean));
  const targets = new Set(moves.filter(([source]) => picked && source === picked).map(([, target]) => target));
  for (const group of $("picture").querySelectorAll("[data-place]")) {
    const name = group.dataset.place;
    const names = [sources.has(name) && "can", name === picked && "picked", targets.has(name) && name !== picked && "target"].filter(Boolean);
    if (!names.length) continue;
    group.classList.add(...names);
    group.setAttribute("role", "button");
    group.tabIndex = 0;
    frame(group);
  }
}

/** Frames around where the judged move at hand takes a card from and puts it, and where the better one does. */
function markCost() {
  if (atHand <= shown.turn) return;
  const { played: own, best } = costOf(shown.turn);
  const better = new Set(gestures()[best]);
  for (const place of new Set([...better, ...gestures()[own] ?? []])) {
    const groups = placesOf(place);
    if (groups.length === 1) frame(groups[0]).classList.toggle("better", better.has(place)); // of several, none is meant
  }
}

/** What is said of a position, as nodes. */
function status(position) {
  if (position.problem) return [position.problem];
  if (!isBack()) return said(position);
  if (isEnd(position)) return [result(position)];
  const judged = atHand > position.turn && judgement(position.turn, (text) => cardName(text) ?? inWords(text));
  const last = played.slice(0, position.turn).slice(-1).flatMap(told);
  return [...(judged ? [judged, " "] : last), `After ${position.turn} of ${count(live.turn, "move")}.`];
}

const isEnd = (position) => position.outcome.over && position.turn === live.turn;

/** What is asked of the person, or told instead. */
function question(position, active) {
  if (isEnd(position)) return result(position);
  if (!active) return position === live && token ? "Waiting for the others." : "";
  return position.question;
}

/** The last moves, the newest first: back to the seat's own one, and those before it in which each seat plays once, such as a trick. */
function said({ turn, seat }) {
  const past = played.slice(0, turn);
  let first = Math.max(0, past.findLastIndex((one) => one.seat === seat));
  for (const seats = new Set([seat]); first && !seats.has(past[first - 1].seat); first--) seats.add(past[first - 1].seat);
  return past.slice(Math.max(first, turn - MOST_SAID)).reverse().flatMap(told);
}

/** A move in words, as nodes; a card as it is drawn, so that a whole trick has room. */
function told({ seat, move: text, card }) {
  const name = nameOf(seat);
  return cardName(text) ? [`${capital(name)}: `, ...dressed(text), ". "] : [`${capital(did(name, orderOf(game, text, card)))}. `];
}

const OUTCOMES = { "You won": "won", "You lost": "lost", Drawn: "drawn" };

/** How a game ended for a seat: a key of OUTCOMES. */
function verdict({ seat, outcome: { reason, scores } }) {
  const [own, ...others] = sidesFrom(seat).map((other) => scores[other]);
  if (!others.length) return reason === "won" ? "You won" : "You lost";
  const most = Math.max(...others);
  return own < most ? "You lost" : own > most ? "You won" : "Drawn";
}

/** The same with the scores, and why. */
function result(position) {
  const { reason, scores } = position.outcome;
  const [own, ...others] = sidesFrom(position.seat).map((seat) => scores[seat]);
  const why = (game.ends[reason] ?? reason.replaceAll("_", " ")).replace("{score}", own);
  const points = others.length ? ` ${[own, ...others].join(" to ").replaceAll("-", "−")}` : why || reason === "won" ? "" : ` ${counted(game, own)}`;
  return `${watched ? winners(position) : verdict(position)}${points}${why && `: ${why}`}.`;
}

/** How a game ended, for those who watched it. */
function winners({ outcome: { reason, scores } }) {
  const most = Math.max(...scores);
  const names = scores.flatMap((score, seat) => (score === most ? [seatName(seat)] : []));
  if (scores.length === 1) return reason === "won" ? "Won" : "Lost";
  return names.length === scores.length ? "Drawn" : `${capital(names.join(" and "))} won`;
}

/** A seat of each side, a given one first. */
const sidesFrom = (seat) => [seat, ...game.sides.keys()].filter((one, number, all) => {
  return all.findIndex((other) => game.sides[other] === game.sides[one]) === number;
});

const isWatching = () => $("table").classList.contains("watching");
const nameOf = (seat) => watched ? seatName(seat) : game.seat_names[(seat - (shown ?? live).seat + game.seats) % game.seats];

const written = ({ seat, move: text, card }) => doneBy(nameOf(seat), orderOf(game, text, card), text);

/** A move of the position that is shown, in words: with the card that goes, if it lies there for all to see. */
function inWords(text) {
  const [source] = (shown?.picture && gestures()[text]) || [];
  const [group] = source ? placesOf(source) : [];
  return orderOf(game, text, group && topCard(group)?.dataset.card);
}

/** Words of a move, and what it comes to here, if the game says so. */
function noted(text, words) {
  const note = shown.move_notes[text];
  return note && !words.includes(note) ? `${words}: ${note}` : words;
}

/** The same with the code of the move, as a title: also for those who do not want codes on buttons. */
function titleOf(text) {
  const words = noted(text, capital(inWords(text)));
  return isClear(words, text) ? words : `${words} (${text})`;
}

const isClear = (words, text) => cardName(text) || saysCode(words, text);

/** Show the button that opens the status, where not all of it fits. */
function fit() {
  const said = $("said");
  $("all").hidden = !said.classList.contains("open") && said.scrollHeight <= said.clientHeight + 1;
}

function openStatus() {
  const isOpen = $("said").classList.toggle("open");
  $("all").textContent = isOpen ? "less" : "all";
  $("all").setAttribute("aria-expanded", String(isOpen));
  fit();
}

// Touching and dragging

function tap(name) {
  const home = homeward(name);
  if (home && name === picked && performance.now() - pickedAt < DOUBLE) return void move(home);
  const moves = Object.entries(gestures()).filter(([, [source]]) => source);
  const meant = moves.find(([, [source, target]]) => picked && source === picked && target === name);
  const own = moves.filter(([, [source]]) => source === name);
  if (meant && name !== picked) return void move(meant[0]);
  if (own.length === 1 && !picked) return void move(own[0][0]);
  if (!own.length && !picked) refuse(name);
  picked = own.length && name !== picked ? name : "";
  pickedAt = performance.now();
  if (picked && own.length === 1) return void move(own[0][0]);
  mark();
  $("question").textContent = picked
    ? `${labelOfPlace(picked)}: where to? ${own.map(([, [, target]]) => labelOfPlace(target)).join(", ")}.`
    : question(shown, true);
}

/** Say that nothing can be moved from a place now, and shake it. */
function refuse(name) {
  $("status").textContent = `${capital(labelOfPlace(name))}: nothing to move there now.`;
  shake(name);
}

let drag = null;

function press(event) {
  const group = event.target.closest?.("[data-place]");
  if (!group || !isActive() || $("moves").firstChild.disabled || event.button !== 0) return;
  drag = { group, name: group.dataset.place, x: event.clientX, y: event.clientY, ghost: null, id: event.pointerId };
}

function pull(event) {
  if (!drag || event.pointerId !== drag.id) return;
  const across = event.clientX - drag.x;
  const down = event.clientY - drag.y;
  if (!drag.ghost) {
    if (Math.hypot(across, down) < DRAG || !drag.group.classList.contains("can")) return;
    const card = topCard(drag.group);
    if (!card) return;
    picked = drag.name;
    mark();
    drag.ghost = card.cloneNode();
    drag.ghost.setAttribute("class", "ghost");
    drag.from = card.getAttribute("transform");
    $("picture").firstChild.append(drag.ghost);
    $("picture").setPointerCapture(event.pointerId);
  }
  const scale = $("picture").firstChild.getScreenCTM().a;
  drag.ghost.setAttribute("transform", `translate(${across / scale} ${down / scale}) ${drag.from}`);
}

function release(event) {
  if (!drag || event.pointerId !== drag.id) return;
  const { ghost, name } = drag;
  drag = null;
  if (!ghost) {
    if (event.type === "pointerup") tap(name);
    return;
  }
  ghost.remove();
  picked = "";
  const meant = Object.entries(gestures()).find(([, [source, target]]) => source === name && isAt(target, event));
  if (event.type === "pointerup" && meant) move(meant[0]);
  else mark();
}

function key(event) {
  if (event.key === "Escape") {
    picked = "";
    mark();
    if (isActive()) $("question").textContent = question(shown, true);
  } else if (event.key === "Enter" || event.key === " ") {
    const group = event.target.closest("[data-place]");
    if (!group || !isActive()) return;
    event.preventDefault();
    tap(group.dataset.place);
    placesOf(group.dataset.place)[0]?.focus();
  }
}

// Looking back

const isBack = () => !$("stepper").hidden;

function stepping(is) {
  $("stepper").hidden = !is;
  $("table").classList.toggle("back", is);
  $("step").setAttribute("aria-expanded", String(is));
  $("step").textContent = is ? "Return" : "Look back";
}

async function goTo(at, hand) {
  const wanted = Math.min(Math.max(at, 0), live.turn);
  if (token && wanted === live.turn) return void show(live);
  const now = epoch;
  $("at").value = wanted;
  await attempt(async () => {
    const position = await positionAt(wanted);
    if (now === epoch && Number($("at").value) === wanted) show({ ...position, moves: [] }, false, hand);
  });
}

/** Look at a move, counted from 1: at the position before it if it was judged, or else after it; at the last one, go on. */
function lookAt(number) {
  if (isWatching()) return undefined;
  const judged = costOf(number - 1) !== undefined;
  stepping(!token || judged || number < live.turn);
  return goTo(judged ? number - 1 : number, number);
}

/** Go one position on; first to what the next move cost, if that is not shown yet. */
function goOn() {
  if (atHand === shown.turn && costOf(shown.turn)) show(shown);
  else goTo(shown.turn + 1);
}

/** Say what each move of the seat cost, in the opinion of the player that gives hints. */
async function judge() {
  const [now, name] = [epoch, $("adviser").value];
  const seat = () => Number($("seat").value || 0);
  const of = seat();
  const moves = token ? played.map((one) => one.move) : record.moves;
  grey("judge", "One moment.");
  await attempt(() => review({
    moves, judge: name, unit: game.margin_unit, goesOn: () => now === epoch && of === seat(),
    positionAt: (at) => (token ? ask(`v1/seats/${token}?at=${at}`) : ask("v1/replay", { record, seat: of, at })),
    ask: (view, move, at) => ask(`v1/judge#at=${at}${token ? "" : "&file="}`, { game: game.name, opponent: name, view, move }),
    written: (text, at) => (cardName(text) ? dressed(text) : [orderOf(game, text, text === moves[at] ? played[at].card : "")]),
  }));
  grey("judge", "");
  if (now === epoch && isBack()) show(shown);
}

// What is listened to

$("form").addEventListener("submit", play);
$("file").addEventListener("change", open);
$("leave").addEventListener("click", leave);
$("again").addEventListener("click", again);
$("review").addEventListener("click", async () => {
  stepping(true);
  show(live);
  await judge();
});
$("share").addEventListener("click", () => attempt(async () => shareGame(await ask(`v1/seats/${token}/record`))));
$("invite").addEventListener("click", () => showLinks(linksOf(token), nameOf));
$("on").addEventListener("click", () => attempt(() => sit(keptToken())));
window.addEventListener("popstate", travel);
$("help").addEventListener("click", help);
pressed("hint", hint);
pressed("judge", judge);
$("all").addEventListener("click", openStatus);
$("stop").addEventListener("click", () => thinking?.abort(new Error("Stopped.")));
setInterval(tick, 250);
pressed("undo", undo);
pressed("save", save);
$("step").addEventListener("click", () => {
  stepping($("stepper").hidden);
  show(live);
});
const lookAndScroll = (number) => {
  lookAt(number);
  $("status").scrollIntoView({ block: "nearest" }); // on a phone the list is below the picture
};
onMove(lookAndScroll);
onCost((at) => lookAndScroll(at + 1));
$("at").addEventListener("input", () => goTo(Number($("at").value)));
$("seat").addEventListener("change", async () => {
  clearReview();
  await goTo(Number($("at").value));
  list(0, live.moves, written);
  markMove(shown.turn);
});
for (const [id, go] of [["first", () => goTo(0)], ["back", () => goTo(shown.turn - 1)], ["next", goOn], ["last", () => goTo(live.turn)]]) {
  $(id).addEventListener("click", go);
}
$("picture").addEventListener("pointerdown", press);
$("picture").addEventListener("pointermove", pull);
$("picture").addEventListener("pointerup", release);
$("picture").addEventListener("pointercancel", release);
$("picture").addEventListener("keydown", key);
let lastShape = shape();
window.addEventListener("resize", () => {
  fit();
  if (shape() === lastShape || !shown) return;
  lastShape = shape();
  const now = epoch;
  const at = shown.turn;
  attempt(async () => {
    if (isWatching()) return void (shown.picture && drawPicture(await ask(drawn(`v1/watch/${watched}`))));
    const again = await positionAt(at);
    if (now !== epoch || shown.turn !== at) return;
    if (shown === live) live = { ...live, picture: again.picture };
    show(shown.turn === live.turn && token ? live : again);
  });
});

begin();
