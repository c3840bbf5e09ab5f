// Plays a whole game over HTTP with nothing but fetch: node client.mjs [game] [opponent] [server] [options]
// It sits in seat 0 and plays what the opponent `adviser` would.
const [game = "russian_bank", opponent = "greedy", server = "http://127.0.0.1:8000", options = "{}"] = process.argv.slice(2);
const adviser = "greedy";

async function ask(path, body) {
  const how = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const reply = await fetch(server + path, how);
  const answer = await reply.json();
  if (!reply.ok) throw new Error(`${path}: ${answer.error.code}: ${answer.error.message}`);
  return answer;
}

const { games } = await ask("/v1/games");
const { seats: numSeats, title } = games.find((one) => one.name === game);
const players = [null, ...Array(numSeats - 1).fill(opponent)];
const table = await ask("/v1/tables", { game, players, options: JSON.parse(options) });
const { link } = table.seats[0];
console.log(`${title}: seat 0 against ${players.slice(1).join(", ") || "the cards"}`);

let position = await ask(`${link}?wait=30&since=0`);
const tell = () => position.moves.forEach(({ seat, move }) => console.log(`${seat === 0 ? "me " : `  ${seat}`} ${move}`));
tell();
while (!position.outcome.over) {
  if (position.problem) throw new Error(position.problem);
  if (!position.your_turn) {
    position = await ask(`${link}?wait=30&since=${position.turn}`);
  } else {
    const { moves } = await ask("/v1/advise", { game, opponent: adviser, view: position.view });
    position = await ask(`${link}/moves`, { move: moves[0].move, turn: position.turn, wait: 30 });
  }
  tell();
}
console.log(`over after ${position.turn} moves: ${position.outcome.reason}, scores ${position.outcome.scores.join(" ")}`);
const record = await ask(`${link}/record`);
console.log(`record: ${record.moves.length} moves, version ${record.version} of the rules`);
await fetch(server + link, { method: "DELETE" });
