"""The options of `train`. As in `options`, nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from tui_transformer.cli.options import SIZES, Flags
from tui_transformer.cli.typer_layer import takes_options

Given = Mapping[str, Any]
"""Options that were given, by the names of the settings."""

OF_THE_MODEL = ("vocab", *SIZES, "device", "dtype", "seed")
"""The options that are as in the other commands."""


def _option(kind: Any, help: str, **more: Any) -> tuple[Any, None]:
    return Annotated[kind | None, typer.Option(help=help, **more)], None


_RUN = {
    "task": _option(
        Literal["next-word", "next-character", "masked-word", "classify", "pairs"], "What the model learns to predict."
    ),
    "recipe": _option(
        Literal["copy", "dates", "question", "story"], "Train a model that comes with the program again."
    ),
    "out": _option(Path, "The folder of the run, and of the model.", metavar="FOLDER"),
    "resume": (Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --out.")], False),
    "log": _option(
        Path,
        "A line a step; log.jsonl in the folder of the run by default. Lines of steps made again are replaced.",
        metavar="FILE.csv|.jsonl",
    ),
    "steps": _option(int, "Steps of the optimiser.  [default: 1000]"),
    "batch": _option(int, "Examples of a batch.  [default: 32]"),
    "accumulate": _option(int, "Batches of a step.  [default: 1]"),
    "length": _option(int, "Tokens of an example at most.  [default: 64]"),
    "learning_rate": _option(float, "The highest of the schedule.  [default: 0.001]"),
    "optimizer": _option(Literal["adamw", "adam", "sgd"], "How gradients change weights.  [default: adamw]"),
    "schedule": _option(
        Literal["cosine", "inverse-sqrt", "constant"], "The learning rate after the warm-up.  [default: cosine]"
    ),
    "warm_up": _option(int, "Steps until the learning rate is reached.  [default: 100]"),
    "clip": _option(float, "Longest norm of all gradients together; 0 for any.  [default: 1.0]"),
    "dropout": _option(float, "Share of values dropped while training.  [default: 0.1]"),
    "label_smoothing": _option(float, "Share of a target spread over all words.  [default: 0]"),
    "weight_decay": _option(float, "Of matrices and embeddings.  [default: 0.01 with adamw, else 0]"),
    "validation": _option(float, "Share of the examples not learned from.  [default: 0.1]"),
    "save_every": _option(int, "Steps between checkpoints.  [default: a twentieth of all, at least 10]"),
    "model": _option(str, "A checkpoint to begin with; by default the model is new.", metavar="FOLDER|NAME"),
    "tokens": _option(Literal["words", "characters", "bpe"], "What a vocabulary is built of; by default by the task."),
    "vocab_size": _option(int, "Its entries at most.  [default: 10000]"),
    "split": _option(
        Literal["words", "runs", "spaces"],
        "What a word of it is: a run of letters and digits, which an apostrophe may join (words, the default); runs "
        "alone; or whatever stands between spaces.",
    ),
    "case": _option(
        Literal["lower", "kept"], "Its words in small letters (the default), or with the capitals that are written."
    ),
    "embedding": _option(
        Literal["normal", "uniform", "zeros"],
        "How word vectors of a new model begin: normal, of variance 1 ÷ d_model, rows about 1 long; uniform in "
        "±√(2 ÷ d_model), none far out; zeros, where only positions tell words apart until they are learned.  "
        "[default: normal]",
    ),
    "vectors": _option(
        Path,
        "Begin with word vectors of GloVe or word2vec for the words of the vocabulary; d_model is theirs.",
        metavar="FILE",
    ),
    "architecture": _option(Literal["encoder", "decoder", "encoder-decoder"], "Of a new model; by default the task's."),
}


def _options() -> dict[str, tuple[Any, Any]]:
    """The options above, and those of the model, all of them None where they are not given."""
    hints = get_type_hints(Flags, include_extras=True)
    return _RUN | {name: _optional(hints[name]) for name in OF_THE_MODEL}


def _optional(annotation: Any) -> tuple[Any, None]:
    kind, option = get_args(annotation)
    return Annotated[kind | None, option], None


def takes_train_options(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `given` holds the options of `train` that were given."""
    return takes_options(
        function, _options(), "given", lambda given: {name: value for name, value in given.items() if value is not None}
    )
