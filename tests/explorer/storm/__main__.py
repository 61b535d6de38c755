"""Storms from the command line: one again that failed, or many."""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from .run import MODELS, Outcome, run

WIDE = 300
"""Characters of what did not hold that are said once more, below all that is told of it."""


def main() -> int:
    """Run storms; the exit code is 1 where one did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.explorer.storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="so many seeds, one after another")
    parser.add_argument("--model", choices=MODELS, help="by default each in turn")
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--gap", type=float, help="seconds between two events; by default 0.004 and 0 in turn")
    parser.add_argument("--together", type=int, default=2, help="so many at a time")
    given = parser.parse_args()
    failed = 0
    with ThreadPoolExecutor(given.together) as pool:
        outcomes = [pool.submit(one, seed, given) for seed in range(given.seed, given.seed + given.runs)]
        for done in outcomes:
            outcome = done.result()
            print(outcome, flush=True)
            if outcome.faults:
                failed += 1
                print(f"  {outcome.faults[0][:WIDE]}\n  again: {again(outcome, given)}", flush=True)
    print(f"{given.runs - failed} of {given.runs} storms held")
    return 1 if failed else 0


def one(seed: int, given: argparse.Namespace) -> Outcome:
    """The storm of a seed; what is not said depends on it."""
    return run(seed, model_of(seed, given), given.events, gap_of(seed, given))


def model_of(seed: int, given: argparse.Namespace) -> str:
    """Each model in turn."""
    return given.model or MODELS[seed % len(MODELS)]


def gap_of(seed: int, given: argparse.Namespace) -> float:
    """A gap for two storms of three, events at once for the third."""
    if given.gap is not None:
        return float(given.gap)
    return 0.0 if seed % 3 == 0 else 0.004


def again(outcome: Outcome, given: argparse.Namespace) -> str:
    """The command that runs a storm again."""
    gap = gap_of(outcome.seed, given)
    return (
        f"python -m tests.explorer.storm --seed {outcome.seed} --model {outcome.model} "
        f"--events {given.events} --gap {gap:g}"
    )


if __name__ == "__main__":
    sys.exit(main())
