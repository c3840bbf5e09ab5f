"""Moving pictures of the games for the front page and their own pages: `python docs/motion.py` writes docs/games/*.gif.

A deal played by `strong`, as one seat sees it. Needs the extra `draw`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from card_envs import GAMES, Game, load_opponent
from card_envs.draw import draw
from card_envs.draw.raster import save_gif
from card_envs.envs.aec import CardEnv

FOLDER = Path(__file__).parent / "games"
SEED, PLAYER = 2, "strong"
PICTURES, MOST_MOVES, WIDTH, SECONDS = 12, 48, 400, 1.0


def pictures(game: Game) -> list[str]:
    """Return SVG documents from the beginning of a deal, as `player_0` sees it."""
    env, player, rng = CardEnv(game), load_opponent(PLAYER, game), np.random.default_rng(SEED)
    env.reset(seed=SEED)
    seen = [draw(game, env.view("player_0"))]
    while env.agents and env.deals == 1 and len(seen) < MOST_MOVES:
        env.step(player.move(env, rng))
        seen.append(draw(game, env.view("player_0")))
    return [seen[i] for i in np.linspace(0, len(seen) - 1, min(PICTURES, len(seen))).astype(int)]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for game in GAMES.values():
        path = FOLDER / f"{game.name}.gif"
        save_gif(path, pictures(game), WIDTH, SECONDS)
        print(f"{path.relative_to(Path.cwd())}: {path.stat().st_size / 1e3:.0f} kB")
