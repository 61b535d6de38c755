"""The settings of a run, checked; they are kept beside it, so that it can be resumed with the same ones."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, read_json, write_whole
from tui_transformer.learning.optimizers import OPTIMIZERS, SCHEDULES
from tui_transformer.learning.recipes import LARGEST, RUN
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model.checks import Check, checked, is_number, one_of, size_up_to
from tui_transformer.model.word_vectors import NORMAL, STARTS
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.files import shown_path
from tui_transformer.text.vocabulary_rules import CASES, SPLITS

UNITS = ("words", "characters", "bpe")
MOST = 1 << 40


@dataclass(frozen=True)
class Settings:
    """A run: the task and its data, the model, and how it learns; UsageError for a setting that cannot be.

    Names: `task` in `TASKS`, `optimizer` in `OPTIMIZERS`, `schedule` in `SCHEDULES`, `split` and `case` (of what a word
    of a vocabulary is) in `SPLITS` and `CASES`; "" is what is usual. `file`, `model` and `vectors` are whole paths: of
    the text, of a checkpoint to begin with, "" for a new model, and of word vectors for it, "" for none.

    A new model has `sizes` as in `config.json`, its architecture is the task's unless given, and its table of words
    begins `embedding`: "normal", "uniform" or "zeros". `vocab` is a vocabulary's name or file; by default one is built
    from the text, of `tokens` (words, characters or bpe, by default the task's), of at most `vocab_size` entries.

    A step has `accumulate` batches of `batch` examples of at most `length` tokens. The learning rate is the highest
    that the schedule reaches, after the steps of `warm_up`. `clip` is the longest that all gradients together may be, 0
    for any; `label_smoothing` is ε, `weight_decay` λ, of matrices and embeddings, None for what is usual with the
    optimiser. `dropout` is the share of values that are dropped, `validation` that of the examples that are not learned
    from. `save_every` is in steps, 0 for a twentieth of all, at least 10. The seed is of weights, order, dropout and
    masks.
    """

    task: str
    file: str
    model: str = ""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    vocab: str = ""
    tokens: str = ""
    vocab_size: int = 10_000
    split: str = ""
    case: str = ""
    embedding: str = NORMAL
    vectors: str = ""
    device: str = "auto"
    dtype: str = "float32"
    steps: int = 1000
    batch: int = 32
    accumulate: int = 1
    length: int = 64
    learning_rate: float = 1e-3
    optimizer: str = "adamw"
    schedule: str = "cosine"
    warm_up: int = 100
    clip: float = 1.0
    dropout: float = 0.1
    label_smoothing: float = 0.0
    weight_decay: float | None = None
    validation: float = 0.1
    save_every: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for key, check in _CHECKS.items():
            check(f"--{key.replace('_', '-')}", getattr(self, key))
        if self.vocab and (self.split or self.case):
            raise UsageError(f"--{'split' if self.split else 'case'}: what a word is, the vocabulary {self.vocab} says")

    @property
    def decay(self) -> float:
        """λ of the weight decay."""
        return OPTIMIZERS[self.optimizer].usual_decay if self.weight_decay is None else self.weight_decay

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Settings:
        """The settings that were kept; UsageError where they are not whole, or cannot be."""
        known = {each.name: each.type for each in dataclasses.fields(cls)}
        texts = [value for key, value in raw.items() if known.get(key) == "str"]
        whole = {"task", "file"} <= raw.keys() and isinstance(raw.get("sizes", {}), dict)
        if not whole or not all(isinstance(value, str) for value in texts):
            raise UsageError("not the settings of a run")
        return cls(**{key: value for key, value in raw.items() if key in known})


def _number(low: float, high: float, *, open_above: bool = False) -> Check:
    def is_right(value: object) -> bool:
        return is_number(value, -math.inf) and low <= value <= high and not (open_above and value == high)

    return checked(is_right, f"is not a number from {low:g} {'below' if open_above else 'to'} {high:g}")


def _or(free: int | None, check: Check) -> Check:
    return lambda key, value: None if value == free and value is not False else check(key, value)


def _above_zero(key: str, value: object) -> None:
    _number(0, 1e6)(key, value)
    if not value:
        raise UsageError(f"{key} 0 learns nothing: use a number above 0, as 0.001")


_CHECKS: Mapping[str, Check] = {
    "task": one_of(tuple(TASKS)),
    "tokens": one_of(("", *UNITS)),
    "split": one_of(("", *SPLITS)),
    "case": one_of(("", *CASES)),
    "embedding": one_of((NORMAL, *STARTS)),
    "optimizer": one_of(tuple(OPTIMIZERS)),
    "schedule": one_of(tuple(SCHEDULES)),
    **dict.fromkeys(("steps", "batch", "accumulate", "length", "vocab_size"), size_up_to(MOST)),
    **dict.fromkeys(("warm_up", "save_every", "seed"), _or(0, size_up_to(MOST))),
    "learning_rate": _above_zero,
    "clip": _number(0, 1e9),
    "weight_decay": _or(None, _number(0, 1e3)),
    **dict.fromkeys(("dropout", "label_smoothing", "validation"), _number(0, 1, open_above=True)),
}


CHANGEABLE = ("steps", "save_every", "device", "file")
"""Settings that may be others when a run is resumed; the text of another file has to be the same."""


def is_run(folder: Path) -> bool:
    """True if a run was begun in the folder."""
    return is_file(folder / RUN)


def write_settings(folder: Path, settings: Settings, text: str) -> None:
    """Keep the settings of a run, and the fingerprint of its text."""
    data = json.dumps({"settings": dataclasses.asdict(settings), "text": text}, indent=2) + "\n"
    write_whole(folder / RUN, data.encode())


def read_settings(folder: Path) -> tuple[Settings, str]:
    """The settings of a run, and the fingerprint of its text.

    InputError where no run is there, or its file is damaged.
    """
    if not is_run(folder):
        raise InputError(f"{shown_path(folder)} holds no run: leave out --resume to begin one")
    raw = read_json(folder / RUN, LARGEST)
    try:
        return Settings.from_json(raw["settings"]), str(raw["text"])
    except UsageError as error:
        raise InputError(f"{shown_path(folder / RUN)}: {error}: the file is damaged") from error
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{shown_path(folder / RUN)}: not the settings of a run: the file is damaged") from error


def with_changes(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings of the run, with those of `given` that may change; UsageError where one that may not is another."""
    own = dataclasses.asdict(settings)
    fixed: dict[str, tuple[Any, Any]] = {}
    for key, value in given.items():
        if key == "sizes":
            fixed |= {name: (size, own["sizes"].get(name, "another")) for name, size in value.items()}
        elif key not in CHANGEABLE:
            fixed[key] = value, own[key]
    for name, (wanted, has) in fixed.items():
        if wanted != has:
            option = f"--{name.replace('_', '-')}"
            began = "was begun without it" if has in ("", None) else f"has {has}"
            raise UsageError(f"{option} {wanted}: the run {began}: leave it out, or begin another run in --out")
    return replace(settings, **{key: given[key] for key in CHANGEABLE if key in given})
