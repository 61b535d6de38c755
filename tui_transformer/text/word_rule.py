"""Rules for what a word is, and for the form in which it is looked up."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tui_transformer.errors import UsageError


def normal_form(word: str) -> str:
    """Give the form in which words are looked up: lower case, composed characters (NFC), a straight apostrophe."""
    return _composed(word.lower())


def _composed(word: str) -> str:
    return word if word.isascii() else unicodedata.normalize("NFC", word).replace("’", "'")


def _run(joining: str) -> str:
    """Letters and digits of any script, with the marks and joiners on them."""
    return rf"[^\W_]+(?:[{joining}]+[^\W_]*)*" if joining else r"[^\W_]+"


def _joined(joining: str) -> str:
    """Runs that an apostrophe may join."""
    run = _run(joining)
    return f"{run}(?:['’]{run})*"


def _between_spaces(joining: str) -> str:
    """Whatever stands between white space."""
    del joining
    return r"\S+"


Pattern = Callable[[str], str]
"""The regular expression of a word, given the marks and joiners that occur in a text."""

SPLITS: Mapping[str, Pattern] = {"words": _joined, "runs": _run, "spaces": _between_spaces}
CASES: Mapping[str, Callable[[str], str]] = {"lower": normal_form, "kept": _composed}


@dataclass(frozen=True)
class WordRule:
    """The rule for what a word is, and in what form it is looked up.

    Attributes:
        split: "words": runs of letters and digits, which an apostrophe may join; one that is not in the vocabulary is
            split at its apostrophes. "runs": runs alone. "spaces": whatever stands between white space.
        case: "lower" for small letters, "kept" for those that are written.

    Raises:
        UsageError: There is no such way to split, or no such case.
    """

    split: str = "words"
    case: str = "lower"

    def __post_init__(self) -> None:
        for name, known in (("split", SPLITS), ("case", CASES)):
            if getattr(self, name) not in known:
                raise UsageError(f"{name} {getattr(self, name)[:40]!r} is not known: use {', '.join(known)}")

    def pattern(self, joining: str) -> str:
        """The regular expression of a word, given the marks and joiners that occur in a text."""
        return SPLITS[self.split](joining)

    def form(self, word: str) -> str:
        """The form in which a written word is looked up."""
        return CASES[self.case](word)

    def to_options(self) -> Mapping[str, str]:
        """The settings that are not the default, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value != getattr(RULE, name)}


RULE = WordRule()
"""Words in small letters, as a plain list of words has them."""
