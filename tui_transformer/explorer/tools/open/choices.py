"""Things to open: models by name or folder, tours, sentences, vocabularies, each with what is known of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_transformer.guide.texts import tour_question, tours
from tui_transformer.model.loading import BUILT_IN
from tui_transformer.model.local_models import LocalModel, trained_models
from tui_transformer.session.tour_stop import OF_A_PACKAGE
from tui_transformer.text.vocabulary import built_in_vocabularies
from tui_transformer.trained import about

Kind = Literal["model", "tour", "sentence", "vocabulary"]
DOES = {
    "question": "tells a question from a statement",
    "dates": "writes dates as numbers",
    "copy": "repeats letters",
    "story": "writes very short stories",
}
"""Purpose of each trained model."""


SIZES = "sizes of your own with {settings}"
"""Said of models of random weights."""


@dataclass(frozen=True)
class Choice:
    """Something that can be opened.

    Attributes:
        name: A model as `--model` takes it, a tour, a sentence, a vocabulary.
        source: Where it is from, or what it is.
        says: What is known of it; of a tour the question that it answers.
        kind: What it is.
    """

    name: str
    source: str
    says: str = ""
    kind: Kind = "model"


def at_once(recent: Sequence[str], sentences: Sequence[str] = (), sizes: str = "") -> tuple[Choice, ...]:
    """Choices known without a search: trained models, tours, what was used lately, models of random weights.

    Args:
        recent: Models that were open lately.
        sentences: Sentences that were explored lately.
        sizes: How models of random weights are given sizes.
    """
    trained = [Choice(name, "trained", _known(name)) for name in trained_models()]
    told = [Choice(name, "tour", tour_question(name) or "a guided tour", "tour") for name in _told()]
    built_in = [Choice(name, "random weights", sizes) for name in BUILT_IN]
    lately = [Choice(name, "recent") for name in recent]
    written = [Choice(text, "sentence", kind="sentence") for text in sentences]
    return _each_once((*trained, *told, *lately, *built_in, *written))


def with_models(choices: Iterable[Choice], models: Iterable[LocalModel]) -> tuple[Choice, ...]:
    """The same, and the checkpoints that are on this computer."""
    return _each_once((*choices, *(Choice(each.name, each.source, str(each.folder)) for each in models)))


def vocabularies(recent: Sequence[str], in_use: str) -> tuple[Choice, ...]:
    """The one that is used, to be read again; the word lists of the program; files that were used lately."""
    used = [Choice(in_use, "in use", f"{Path(in_use).name}, read again", "vocabulary")] if in_use else []
    built_in = [Choice(name, "built in", kind="vocabulary") for name in built_in_vocabularies()]
    lately = [Choice(path, "recent", Path(path).name, "vocabulary") for path in recent]
    return _each_once((*used, *built_in, *lately))


def matching(choices: Sequence[Choice], typed: str) -> list[int]:
    """The places of those whose name or description has what is typed in it."""
    wanted = typed.strip().casefold()
    words = (f"{each.name} {each.source} {each.says}".casefold() for each in choices)
    return [place for place, each in enumerate(words) if wanted in each]


def _told() -> list[str]:
    """Tours, those of the trained models first; those of packages only where they are installed."""
    trained = trained_models()
    there = [name for name in tours() if name not in OF_A_PACKAGE or importlib.util.find_spec(name) is not None]
    return sorted(there, key=lambda name: (name not in trained, name))


def _known(name: str) -> str:
    facts = about(name)
    return f"{DOES.get(name, '')} · {facts['weights']:,} weights" if "weights" in facts else DOES.get(name, "")


def _each_once(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    kept: dict[tuple[Kind, str], Choice] = {}
    for each in choices:
        kept.setdefault((each.kind, each.name), each)
    return tuple(kept.values())
