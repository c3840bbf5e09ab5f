"""OpenSpiel's search players as opponents: put them beside ours with, in this folder,

python -m card_envs compare russian_bank greedy open_spiel_bots:IsMcts open_spiel_bots:Mcts --pairs 20
"""

import numpy as np
import pyspiel
from open_spiel.python.algorithms.ismcts import ISMCTSBot
from open_spiel.python.algorithms.mcts import MCTSBot, RandomRolloutEvaluator

from card_envs import Game
from card_envs.envs.spiel import BotPolicy

SIMULATIONS = 50  # for each move
EXPLORATION = 2.0  # for results of 1 and -1


class IsMcts(BotPolicy):
    """Information-set MCTS: a new world for each simulation."""

    def __init__(self, game: Game) -> None:
        super().__init__(game, self.make, reward="win")

    def make(self, game: pyspiel.Game) -> pyspiel.Bot:
        rollouts = RandomRolloutEvaluator(1, np.random.RandomState(0))
        return ISMCTSBot(game, rollouts, EXPLORATION, SIMULATIONS, random_state=np.random.RandomState(1))


class Mcts(BotPolicy):
    """MCTS in one world that fits what the seat knows, taken for the truth."""

    def __init__(self, game: Game) -> None:
        super().__init__(game, self.make, reward="win")

    def make(self, game: pyspiel.Game) -> pyspiel.Bot:
        rollouts = RandomRolloutEvaluator(1, np.random.RandomState(0))
        return MCTSBot(game, EXPLORATION, SIMULATIONS, rollouts, random_state=np.random.RandomState(1))
