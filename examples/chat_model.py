"""A language model at the table: `python examples/chat_model.py --url http://localhost:8080/v1 --model NAME`.

Any endpoint with OpenAI's chat interface will do; a key comes from CHAT_API_KEY. Prints the game and, at the end, how
often the model's answer was no legal move.
"""

import argparse
import json
import os
import urllib.request

from card_envs import GAMES
from card_envs.frontends.text import TextEnv

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True, help="base of the endpoint, ending in /v1")
parser.add_argument("--model", default="default")
parser.add_argument("--game", default="russian_bank", choices=list(GAMES))
parser.add_argument("--opponents", default="greedy")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--most-invalid", type=int, default=20, help="answers after which the game is given up")
args = parser.parse_args()
REMEMBERED = 6  # messages sent beside the first


def ask(messages: list[dict[str, str]]) -> str:
    """Return the model's answer to a conversation."""
    body = json.dumps({"model": args.model, "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('CHAT_API_KEY', '')}"}
    with urllib.request.urlopen(urllib.request.Request(f"{args.url}/chat/completions", body, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


env = TextEnv(args.game, args.opponents)
text, paid, done = env.reset(args.seed), 0.0, env.over
first, talk = {"role": "user", "content": text}, []
print(text)
while not done and env.invalid < args.most_invalid:
    answer = ask([first, *talk[-REMEMBERED:]])
    text, reward, done = env.step(answer)
    paid += reward
    talk += [{"role": "assistant", "content": answer}, {"role": "user", "content": text}]
    print(f"\n> {answer}\n\n{text}")
print(f"\npoints: {paid:+g}; answers that were no legal move: {env.invalid}")
