"""Every game in OpenSpiel (`pip install 'card_envs[open-spiel]'`), and adapters for bots in both directions.

    import card_envs.envs.spiel                                  # registers the games
    game = pyspiel.load_game("card_envs_back_alley", {"options": '{"deals": "single", "reward": "win"}'})
    bot = card_envs.envs.spiel.OpponentBot(card_envs.load_opponent("back_alley/greedy"))

Deals are chance nodes with one outcome (SAMPLED_STOCHASTIC), drawn at each visit. OpenSpiel's MCTS sees all cards of
the state that it is given; IS-MCTS resamples the hidden ones (`resample_from_infostate`).

With the parameter `deals`, a JSON list of custom deals in the format of RULES.md, the first deal is an explicit chance
node instead (EXPLICIT_STOCHASTIC): each of them is as likely as the others. So best responses, exploitability and
counterfactual regret minimization are exact, of the game that is dealt from this list. Later deals of an episode are
the later packs of its custom deal, the last one again and again.

Games, states and bots can be copied and pickled, and `game.deserialize_state(state.serialize())` restores a state.
`pyspiel.serialize_game_and_state` can't be used ("GetRNGState unimplemented"): it asks games of this kind for their
random state, which OpenSpiel does not let games in Python return. Pickle the state instead: its game goes with it.
Ref: Lanctot et al. 2019, "OpenSpiel: a framework for reinforcement learning in games".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyspiel
from numpy.typing import NDArray

from card_envs.engine.buffers import check_int
from card_envs.engine.table import Table
from card_envs.game import Game, Int8s, Pack
from card_envs.games import GAMES
from card_envs.opponents.policy import Decisions, Opponent, Policy, spawn
from card_envs.options import to_python
from card_envs.system.files import reason, short_repr

LONGEST = 1 << 16  # moves of an episode; far more than any has
PREFIX = "card_envs_"
SPLITTING = re.compile(r"[%,()=]")


class Draws:
    """The source of a game's deals, shared by copies of a state, because a copy must not reveal later deals.

    For the same reason, a state sent to another process gets other deals there; the same ones each time.
    """

    def __init__(self, seed: int | np.random.Generator) -> None:
        self._rng = np.random.default_rng(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return Draws, (spawn(self._rng),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Draws:
        return self

    def key(self) -> np.uint64:
        return self._rng.integers(1 << 64, dtype=np.uint64)


class SpielState(pyspiel.State):  # type: ignore[misc]
    """An episode for OpenSpiel: the table and the returns so far."""

    def __init__(self, game: SpielGame) -> None:
        super().__init__(game)
        self.table = Table(game.card_game, game.card_game.rules.new_state(game.options))
        self.draws = game.draws
        self.paid = np.zeros(game.card_game.rules.NUM_SEATS)
        self.packs: list[Pack] = []  # of the listed deal that was dealt
        self.num_dealt = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> SpielState:
        copied: SpielState = self.clone()
        return copied

    def __copy__(self) -> SpielState:
        return self.__deepcopy__({})

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_state, (self.get_game(), self.serialize())

    def current_player(self) -> int:
        if self.table.needs_deal:
            return int(pyspiel.PlayerId.TERMINAL if self.is_terminal() else pyspiel.PlayerId.CHANCE)
        return self.table.seat

    def is_terminal(self) -> bool:
        return self.num_dealt > 0 and self.table.over

    def chance_outcomes(self) -> list[tuple[int, float]]:
        number = 1 if self.num_dealt else max(1, len(self.get_game().deals))
        return [(deal, 1 / number) for deal in range(number)]

    def _legal_actions(self, player: int) -> list[int]:
        legal: list[int] = np.flatnonzero(self.table.legal()).tolist()
        return legal

    def _apply_action(self, action: int) -> None:
        if not self.table.needs_deal:
            self.table.play(action)
            self.paid += self.table.rewards
            return
        deals = self.get_game().deals
        if deals and not self.num_dealt:
            self.packs = deals[action]
        if self.packs:
            self.table.set_deal(self.packs[min(self.num_dealt, len(self.packs) - 1)])
        else:
            self.table.state.rng = self.draws.key()
            self.table.deal()
        self.num_dealt += 1

    def _action_to_string(self, player: int, action: int) -> str:
        return f"deal {action}" if player < 0 else self.table.game.view.move_text(self.table.state, action)

    def to_json(self) -> str:
        """Return the view of the seat to move as JSON; hidden cards stay hidden. `card_envs schema GAME` describes it.

        Raises ValueError before the first deal.
        """
        if not self.num_dealt:
            raise ValueError("to_json: nothing was dealt yet")
        return json.dumps(self.table.game.view.view(self.table.state, self.table.seat))

    def returns(self) -> list[float]:
        paid: list[float] = self.paid.tolist()
        return paid if self.is_terminal() else [0.0] * len(paid)

    def resample_from_infostate(self, player: int, sampler: Any = None) -> SpielState:
        """Return a state in which everything that the player can't know is redrawn, from the listed deals if any."""
        world: SpielState = self.clone()
        if not self.packs:
            world.table.determinize(player, int(self.draws.key()))
            return world
        seen, game = self.information_state_string(player), self.get_game()
        moves = self.history()[1:]
        for deal in np.random.default_rng(self.draws.key()).permutation(len(game.deals)).tolist():
            world = game.new_initial_state()
            world.apply_action(deal)
            for move in moves:
                if move not in world.legal_actions():
                    break
                world.apply_action(move)
            else:
                if not world.is_chance_node() and world.information_state_string(player) == seen:
                    return world
        raise AssertionError("the deal on the table fits what the player sees")

    def __str__(self) -> str:
        view = self.table.game.view
        return view.picture(view.view(self.table.state, self.table.seat)) if self.num_dealt else "before the deal"


class SpielGame(pyspiel.Game):  # type: ignore[misc]
    """A game, with its options, the seed of its deals or a list of them as OpenSpiel parameters (options, deals: JSON).

    The parameters are kept in the form that `str(game)` shows, in which OpenSpiel can read it again: see `_escaped`.

    Raises ValueError for a malformed option or deal.
    """

    def __init__(self, game: Game, params: dict[str, Any]) -> None:
        self.card_game = game
        params = {name: _escaped(value) if isinstance(value, str) else value for name, value in params.items()}
        self.options = game.validated(_parse_parameter("options", params.get("options") or "{}"))
        self.draws = Draws(check_int(params.get("seed", 0), 0, None, "seed"))
        self.deals = _listed(game, self.options, _parse_parameter("deals", params.get("deals") or "[]"))
        modes = pyspiel.GameType.ChanceMode
        kind = _type_of(game, modes.EXPLICIT_STOCHASTIC if self.deals else modes.SAMPLED_STOCHASTIC)
        rules = game.rules
        num_deals = game.view.num_deals(rules.new_state(self.options))
        most = 1.0 if self.options.reward == "win" else max(-rules.WORST_SCORE * num_deals, 1.0)
        info = pyspiel.GameInfo(
            num_distinct_actions=rules.NUM_ACTIONS,
            max_chance_outcomes=max(1, len(self.deals)),
            num_players=rules.NUM_SEATS,
            min_utility=0.0 if game.is_solitaire else -most,
            max_utility=most,
            utility_sum=None if game.is_solitaire else 0.0,
            max_game_length=LONGEST,
        )
        super().__init__(kind, info, params)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_game, (self.card_game, self.get_parameters(), self.draws)

    def serialize(self) -> str:
        """Raise NotImplementedError: OpenSpiel has no way to save a Python game whose deals are drawn."""
        raise NotImplementedError(
            f"{PREFIX}{self.card_game.name}: OpenSpiel can't serialize Python games whose deals are drawn: pickle "
            "the game or the state"
        )

    def new_initial_state(self) -> SpielState:
        return SpielState(self)

    def make_py_observer(self, kind: Any = None, params: Any = None) -> SpielObserver:
        return SpielObserver(self.card_game)


def information_state(player: int, obs: Int8s) -> str:
    """Return the text of what a player sees, obs [D]."""
    return f"{player} {obs.tobytes().hex()}"


class SpielObserver:
    """A player's observation, with perfect recall: observation and information state are the same.

    Texts begin with the player, because OpenSpiel's tabular algorithms keep one table for all players.
    """

    def __init__(self, game: Game) -> None:
        self.tensor = np.zeros(game.rules.OBS_SIZE, np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: SpielState, player: int) -> None:
        self.tensor[:] = state.table.observe(player)

    def string_from(self, state: SpielState, player: int) -> str:
        return information_state(player, state.table.observe(player))


class OpponentBot(pyspiel.Bot):  # type: ignore[misc]
    """An opponent of this package as an OpenSpiel bot; it is shown only what the seat to move knows."""

    def __init__(self, opponent: Opponent, seed: int | np.random.Generator = 0) -> None:
        super().__init__()
        self.opponent = opponent
        self.rng = np.random.default_rng(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.opponent, self.rng)

    def step(self, state: SpielState) -> int:
        world = state.resample_from_infostate(state.current_player())
        return self.opponent.move(world.table, self.rng)

    def restart(self) -> None:
        """Forget the plans of the previous game."""
        self.opponent.reset()

    def restart_at(self, state: SpielState) -> None:
        """Forget the plans of the previous game; the next decision depends only on what the seat sees."""
        self.opponent.reset()


class BotPolicy(Policy):
    """An OpenSpiel bot as a `Policy`. At each decision it gets a determinization of what its seat knows.

    To use it in `compare` as `module:Class`, derive a class whose `__init__` takes only the game. OpenSpiel's bots
    can't be copied or pickled, so a copy makes a bot of its own: derived classes from the game, others by `make`, which
    must be a function of a module to be pickled.
    """

    def __init__(self, game: Game, make: Callable[[pyspiel.Game], pyspiel.Bot], **options: Any) -> None:
        """Create the bot.

        Args:
            game: the game.
            make: creates the bot for the OpenSpiel game.
            options: of the game.
        """
        self.spiel = pyspiel.load_game(PREFIX + game.name, {"options": json.dumps(to_python(options))})
        self.bot = make(self.spiel)
        self._made_by = game, make, options

    def __reduce__(self) -> tuple[Any, ...]:
        game, make, options = self._made_by
        is_derived = type(self).__init__ is not BotPolicy.__init__
        return (type(self), (game,)) if is_derived else (_made_again, (type(self), game, make, options))

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        actions = []
        for world in decisions.worlds(rng, 1)[:, 0]:
            state = self.spiel.new_initial_state()
            state.apply_action(0)
            state.table = Table(decisions.game, world)
            actions.append(self.bot.step(state))
        return np.array(actions, np.int64)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        chosen = self.act(decisions, np.random.default_rng(0))
        return np.eye(decisions.mask.shape[1], dtype=np.float32)[chosen]


def _made_again(kind: type[BotPolicy], game: Game, make: Callable[[Any], Any], options: dict[str, Any]) -> BotPolicy:
    return kind(game, make, **options)


def register(game: Game) -> None:
    """Register a game with OpenSpiel under its name with the prefix `card_envs_`."""

    class Registered(SpielGame):
        def __init__(self, params: dict[str, Any] | None = None) -> None:
            super().__init__(game, params or {})

    pyspiel.register_game(_type_of(game, pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC), Registered)


def _type_of(game: Game, chance_mode: pyspiel.GameType.ChanceMode) -> pyspiel.GameType:
    """Return what OpenSpiel knows about a game before it is loaded."""
    kind = pyspiel.GameType
    return kind(
        short_name=PREFIX + game.name,
        long_name=game.title,
        dynamics=kind.Dynamics.SEQUENTIAL,
        chance_mode=chance_mode,
        information=kind.Information.IMPERFECT_INFORMATION,
        utility=kind.Utility.GENERAL_SUM if game.is_solitaire else kind.Utility.ZERO_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=game.rules.NUM_SEATS,
        min_num_players=game.rules.NUM_SEATS,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={"options": "{}", "seed": 0, "deals": "[]"},
    )


def _escaped(text: str) -> str:
    """Return the text of a parameter with what OpenSpiel's parser of games splits at as in URLs: `,` as `%2C`."""
    return SPLITTING.sub(lambda found: f"%{ord(found[0]):02X}", unquote(text))


def _parse_parameter(name: str, text: str) -> Any:
    """Return the value of a parameter in JSON. Raises ValueError that names the parameter."""
    try:
        return json.loads(unquote(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: not JSON: {reason(error)}: {unquote(text)!r:.80}") from None


def _listed(game: Game, options: Any, deals: object) -> list[list[Pack]]:
    """Return the packs of each deal in a list of custom deals."""
    if not isinstance(deals, list):
        raise ValueError(f"deals: expected a JSON list of deals, got {short_repr(deals)}")
    found = []
    for number, deal in enumerate(deals):
        try:
            found.append(game.view.parse_deal(game.rules.new_state(options), deal))
        except ValueError as error:
            raise ValueError(f"deals[{number}]: {error}") from None
    return found


def _restored_game(game: Game, params: dict[str, Any], draws: Draws) -> SpielGame:
    """Return a game from a copy or pickle."""
    if PREFIX + game.name not in pyspiel.registered_names():
        register(game)
    made: SpielGame = pyspiel.load_game(PREFIX + game.name, params)
    made.draws = draws
    return made


def _restored_state(game: SpielGame, text: str) -> SpielState:
    """Return a state from a pickle."""
    state: SpielState = game.deserialize_state(text)
    state.draws = game.draws
    return state


for _game in GAMES.values():
    register(_game)
