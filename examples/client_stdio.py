"""Plays a whole game against opponents in a child process: python client_stdio.py [game] [opponent]"""

import json
import subprocess
import sys

game, opponent = (*sys.argv[1:], *("back_alley", "greedy")[len(sys.argv) - 1 :])
command = [sys.executable, "-m", "card_envs", "serve", "--stdio", "--game", game]
engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(call, **body):
    """Send a line, read a line."""
    print(json.dumps({"call": call, "body": body}), file=engine.stdin, flush=True)
    answer = json.loads(engine.stdout.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["reply"]


num_seats = ask("games")["games"][0]["seats"]
token = ask("table", game=game, players=[None] + [opponent] * (num_seats - 1))["seats"][0]["token"]
position = ask("position", token=token, wait=30, since=0)
while not position["outcome"]["over"]:
    for played in position["moves"]:
        print("me " if played["seat"] == 0 else f"  {played['seat']}", played["move"])
    if position["your_turn"]:
        move = ask("advise", game=game, opponent="greedy", view=position["view"])["moves"][0]["move"]
        position = ask("move", token=token, move=move, turn=position["turn"], wait=30)
    else:
        position = ask("position", token=token, wait=30, since=position["turn"])
print(f"over after {position['turn']} moves: {position['outcome']}")
engine.stdin.close()
engine.wait()
