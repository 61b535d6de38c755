"""Walks from the command line: one again that failed, or many."""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import sys
from functools import partial
from multiprocessing import get_context

from tests.explorer.walks.models import MODELS
from tests.explorer.walks.walk import MOVES, one, plain


def main() -> int:
    """Walk; the exit code is 1 where one walk did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.explorer.walks", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="so many seeds, one after another")
    parser.add_argument("--model", choices=MODELS, help="by default each in turn")
    parser.add_argument("--moves", type=int, default=MOVES)
    parser.add_argument("--together", type=int, default=2, help="so many at a time")
    parser.add_argument("--shortest", action="store_true", help="look for a shorter walk that fails too")
    given = parser.parse_args()
    failed = 0
    seeds = range(given.seed, given.seed + given.runs)
    work = partial(one, model=given.model, moves=given.moves, cut=given.shortest)
    with get_context("spawn").Pool(given.together, plain, maxtasksperchild=20) as pool:
        for outcome in pool.imap(work, seeds):
            print(outcome, flush=True)
            if outcome.faults:
                failed += 1
                again = f"--seed {outcome.seed} --model {outcome.model} --moves {given.moves} --shortest"
                print(f"  again: python -m tests.explorer.walks {again}", flush=True)
    print(f"{given.runs - failed} of {given.runs} walks held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
