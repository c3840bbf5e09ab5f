"""The command line of the trainers' examples: they learn, and what they learned is measured and saved."""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import card_envs
from card_envs.compare.evaluation import evaluate_every
from card_envs.compare.pairs import play_pairs
from card_envs.opponents.networks.folder import check_place, save_model
from card_envs.opponents.networks.onnx import check_installed, module_to_onnx
from card_envs.options import parse_options

FINAL_PAIRS, FINAL_SEED = 100, 2  # other deals than those of the curve


def run(train: Callable[..., Iterator[tuple[Any, ...]]], steps: int, self_play: bool = False) -> None:
    """Run an example.

    Args:
        train: of (game, seed, **options), and of opponents: learns without end, and yields after each update the
            decisions so far, what is learned (as `play_pairs` takes it), and lines to print.
        steps: decisions in all, unless the user says otherwise.
        self_play: no opponents are passed.
    """
    rivals = "measured against" if self_play else "in the other seats, and measured against"
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--game", default="back_alley", choices=list(card_envs.GAMES), help="to learn")
    parser.add_argument("--steps", type=int, default=steps, help="decisions in all")
    parser.add_argument("--opponent", default="greedy", help=rivals)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the game; repeatable")
    parser.add_argument("--seed", type=int, default=0, help="of weights, deals and draws")
    parser.add_argument("--evaluate", type=int, metavar="STEPS", help="evaluate at this interval, in decisions")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write an opponent (needs the extra onnx)")
    args = parser.parse_args()

    game = card_envs.get_game(args.game)
    try:
        options = parse_options(args.option)
        game.validated(options)
        card_envs.load_opponent(args.opponent, game)
        if args.save:
            check_installed()
            check_place(args.save)
    except ValueError as error:
        parser.error(str(error))

    if not self_play:
        train = partial(train, opponents=args.opponent)
    evaluate = None
    for decisions, learner, *lines in train(game, seed=args.seed, **options):
        print(*lines, sep="\n", end="\n" if lines else "", flush=True)
        if args.evaluate:
            evaluate = evaluate or evaluate_every(args.evaluate, learner, game, [args.opponent], options=options)
            evaluate(decisions)
        if decisions >= args.steps:
            break
    result = play_pairs(game, learner, args.opponent, FINAL_PAIRS, FINAL_SEED, options=options)
    print(f"at the end, on other deals: against {args.opponent} {result.in_words()}")
    if args.save:
        save_model(args.save, game, module_to_onnx(learner, game))
        print(f"python -m card_envs compare {game.name} {args.save} {args.opponent}")
