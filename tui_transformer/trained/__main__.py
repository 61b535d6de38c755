"""Train the models that come with the program again: `python -m tui_transformer.trained [--features] [NAME…]`."""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.features.dictionary import OWN, Features
from tui_transformer.features.labels import OWN as LABELS
from tui_transformer.files import write_whole
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.dictionary import examples
from tui_transformer.learning.loop import Measured, trainer
from tui_transformer.learning.recipes import RECIPES, recipe
from tui_transformer.learning.run import checkpoints
from tui_transformer.learning.settings import Settings, read_settings
from tui_transformer.model.local_models import ABOUT
from tui_transformer.model.model import Model
from tui_transformer.records import replace
from tui_transformer.trained import HERE

DICTIONARIES = {"story": ("--features", "512", "--at", "decoder.1.output")}
"""How the dictionary of a model is learned, by the model's name."""

NEW_LINES, NEW_SEED = 2_000, 1
"""Lines that are measured; the recipes' texts have seed 0."""

MOSTLY = 0.95
"""Share of those that is measured: a run wants some to learn from."""

LABELLED = 400
"""New lines in which it is looked where features are strongest."""


def main() -> None:
    """Make the models that are named."""
    parser = argparse.ArgumentParser(prog="python -m tui_transformer.trained", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(RECIPES)}; all by default")
    parser.add_argument("--features", action="store_true", help="their dictionaries of features alone")
    given = parser.parse_args()
    names = given.names or (DICTIONARIES if given.features else RECIPES)
    if unknown := [name for name in names if name not in (DICTIONARIES if given.features else RECIPES)]:
        parser.error(f"no model is called {unknown[0]!r}: there are {', '.join(RECIPES)}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            if not given.features:
                make(name, Path(folder) / name)
            if name in DICTIONARIES:
                make_features(name, Path(folder) / OWN)


def make(name: str, run: Path) -> None:
    """Train a model as a user would, measure it on new lines, and put it here."""
    started = time.monotonic()
    command = (sys.executable, "-m", "tui_transformer", "train", "--recipe", name, "--out", str(run))
    subprocess.run(command, check=True)  # noqa: S603 - this program
    minutes = (time.monotonic() - started) / 60
    newest = checkpoints(run)[-1]
    model = Model.load(newest, device="cpu")
    measured = measure(name, model)
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    model.save(target)
    size = sum(path.stat().st_size for path in target.iterdir())
    lines = (
        f"# Written by `python -m tui_transformer.trained {name}`, measured on {NEW_LINES:,} new lines.",
        f'command = "tui-transformer train --recipe {name} --out FOLDER"',
        f"steps = {read_settings(run)[0].steps}",
        f"minutes = {minutes:.1f}",
        f"weights = {model.program(1, 1).weight_count()}",
        f"bytes = {size}",
        f"loss = {measured.loss:.4f}",
        f"accuracy = {measured.accuracy:.4f}",
        f"exact = {measured.exact:.4f}",
    )
    write_whole(target / ABOUT, "".join(f"{line}\n" for line in lines).encode())


def make_features(name: str, folder: Path) -> None:
    """Learn a dictionary of a model's features as a user would, and put it beside the model, with what was told."""
    arguments = ("train", "--recipe", name, *DICTIONARIES[name], "--device", "cpu", "--out")
    ended = subprocess.run(  # noqa: S603 - this program
        (sys.executable, "-m", "tui_transformer", *arguments, str(folder)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    rows = (line.split("  ", 1) for line in ended.stdout.splitlines())
    told = {key.strip().replace(" ", "_"): value.strip() for key, value in rows}
    lines = (
        f"# Written by `python -m tui_transformer.trained --features {name}`.",
        f'command = "tui-transformer {" ".join(arguments)} FOLDER"',
        *(f'{key} = "{value}"' for key, value in told.items() if key != "dictionary"),
    )
    write_whole(folder / ABOUT, "".join(f"{line}\n" for line in lines).encode())
    # Of every feature, where it is strongest in new lines of the model's text.
    model, file = Model.load(name, device="cpu"), io.StringIO(newline="")
    at = DICTIONARIES[name][DICTIONARIES[name].index("--at") + 1]
    found = examples(model, Features.load(folder), at, lines_of(name, LABELLED, NEW_SEED))
    csv.writer(file, lineterminator="\n").writerows([("feature", "label"), *enumerate(found)])
    write_whole(folder / LABELS, file.getvalue().encode())
    target = HERE / name / OWN
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)


def measure(name: str, model: Model, count: int = NEW_LINES, seed: int = NEW_SEED) -> Measured:
    """Loss and accuracy on new lines of a recipe's text, without dropout.

    Raises:
        InputError: There are too few lines, or the model is not one of this recipe.
    """
    of_name = recipe(name)
    settings = replace(Settings(**of_name.settings, file=of_name.file), validation=MOSTLY, dropout=0.0)
    measured = trainer(settings, model, [f"{line}\n" for line in lines_of(name, count, seed)]).validate()
    if measured is None:
        raise InputError(f"{name}: there is nothing to measure on")
    return measured


if __name__ == "__main__":
    main()
