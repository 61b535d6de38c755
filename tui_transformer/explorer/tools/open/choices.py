"""What can be opened: models by name or folder, each with what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui_transformer.guide.texts import tour_question, tours
from tui_transformer.model.found import Found, trained_models
from tui_transformer.model.loading import BUILT_IN


@dataclass(frozen=True)
class Choice:
    """A model that can be opened.

    Attributes:
        name: What `--model` takes.
        source: Where it is from.
        says: What is known of it; of a model with a tour the question that this answers.
    """

    name: str
    source: str
    says: str = ""


def at_once(recent: Sequence[str]) -> tuple[Choice, ...]:
    """What is known without looking: trained models, those used lately, and those of random weights."""
    trained = [Choice(name, "trained", _tour(name)) for name in trained_models()]
    built_in = [Choice(name, "random weights", _tour(name)) for name in BUILT_IN]
    return _each_once((*trained, *(Choice(name, "recent") for name in recent), *built_in))


def with_found(choices: Iterable[Choice], found: Iterable[Found]) -> tuple[Choice, ...]:
    """The same, and the checkpoints that are on this computer."""
    return _each_once((*choices, *(Choice(each.name, each.source, str(each.folder)) for each in found)))


def matching(choices: Sequence[Choice], typed: str) -> list[int]:
    """The places of those whose name or description has what is typed in it."""
    wanted = typed.strip().casefold()
    return [place for place, each in enumerate(choices) if wanted in f"{each.name} {each.says}".casefold()]


def _tour(name: str) -> str:
    return tour_question(name) if name in tours() else ""


def _each_once(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    kept: dict[str, Choice] = {}
    for each in choices:
        kept.setdefault(each.name, each)
    return tuple(kept.values())
