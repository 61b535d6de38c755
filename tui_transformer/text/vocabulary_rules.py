r"""What a vocabulary calls its special words, what a word is in it, and the first line of its file that says so.

A file that is no plain list of words begins with `#!vocabulary characters` or `#!vocabulary words`, then what the
special words are called where they are not called `[PAD]`, `[UNK]`, `[BOS]` and `[EOS]`: `padding=<pad> unknown=<unk>
begin=<s> end=</s>`; of words also what a word is, `split=spaces case=kept` (see `WordRule`). The entries follow, one a
line; of characters, those that cannot be seen and the backslash are written as `\x0a` or `\u2028`.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal

from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, escape

UNKNOWN, PADDING = "[UNK]", "[PAD]"
LONGEST = 100


@dataclass(frozen=True)
class Specials:
    """Names of the special words, in the order in which a vocabulary that is built has them.

    Raises:
        UsageError: Two are the same, or one is not 2 to 100 visible characters without white space.
    """

    padding: str = PADDING
    unknown: str = UNKNOWN
    begin: str = "[BOS]"
    end: str = "[EOS]"

    def __post_init__(self) -> None:
        for name in self.names:
            if not 2 <= len(name) <= LONGEST or not name.isprintable() or len(name.split()) != 1 or not cells(name):
                raise UsageError(f"{name[:40]!r} cannot be a special word: write 2 to {LONGEST} visible characters")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"{', '.join(self.names)}: each special word needs a name of its own")

    @property
    def names(self) -> tuple[str, ...]:
        """The four names: padding, unknown, begin, end."""
        return tuple(self.to_options().values())

    def to_options(self) -> Mapping[str, str]:
        """The names by what they are for."""
        return dataclasses.asdict(self)


SPECIALS = Specials()


def normal_form(word: str) -> str:
    """Give the form in which words are looked up: lower case, composed characters (NFC), a straight apostrophe."""
    return _composed(word.lower())


def _composed(word: str) -> str:
    return word if word.isascii() else unicodedata.normalize("NFC", word).replace("’", "'")


def _run(joining: str) -> str:
    return rf"[^\W_]+(?:[{joining}]+[^\W_]*)*" if joining else r"[^\W_]+"


SPLITS: Mapping[str, Callable[[str], str]] = {
    "words": lambda joining: f"{_run(joining)}(?:['’]{_run(joining)})*",
    "runs": _run,
    "spaces": lambda _: r"\S+",
}
"""The regular expression of a word, given the marks and joiners that occur in a text."""

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


Listed = Literal["words", "characters"]
MARK = "#!vocabulary"
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_LARGEST = 0x10FFFF


@dataclass(frozen=True)
class Header:
    """Kind and rule of the entries of a vocabulary file, and names of its special words."""

    kind: Listed
    specials: Specials = SPECIALS
    rule: WordRule = RULE

    def line(self) -> str:
        """The header as it stands in the file."""
        names = self.specials.to_options() if self.specials != SPECIALS else {}
        options = {**names, **self.rule.to_options()}
        return " ".join([MARK, self.kind, *(f"{key}={value}" for key, value in options.items())])


def read_header(line: str) -> Header:
    """The header that a line is.

    Raises:
        InputError: It names a kind or an option that is not known, or a special word that cannot be.
    """
    kind, *options = line.removeprefix(MARK).split() or [""]
    if kind not in ("words", "characters"):
        raise InputError(f"its first line says {kind[:40]!r}: write {MARK} and words or characters")
    given = dict(option.partition("=")[::2] for option in options)
    named = dict(SPECIALS.to_options())
    known = {*named, *(field.name for field in dataclasses.fields(RULE))} if kind == "words" else {*named}
    if odd := sorted(set(given) - known):
        raise InputError(f"its first line says {odd[0][:40]!r}: only {', '.join(sorted(known))} can be named")
    specials = Specials(**{name: given.get(name, usual) for name, usual in named.items()})
    rule = WordRule(**{name: given[name] for name in given if name not in named})
    return Header("characters" if kind == "characters" else "words", specials, rule)


def escaped(entry: str) -> str:
    r"""An entry as a line holds it: a line break is `\x0a`, a space `\x20`, a backslash `\x5c`."""

    def is_plain(character: str) -> bool:
        return character.isprintable() and not character.isspace() and character != "\\"

    return "".join(character if is_plain(character) else escape(ord(character)) for character in entry)


def unescaped(line: str) -> str:
    """The entry that a line holds.

    Raises:
        InputError: A backslash begins no escape.
    """

    def character(match: re.Match[str]) -> str:
        code = int(match[1] or match[2] or match[3], 16)
        if code > _LARGEST:
            raise InputError(f"{match[0]} is no character: they go up to \\U{_LARGEST:08x}")
        return chr(code)

    if "\\" in _ESCAPE.sub("", line):
        raise InputError(f"the entry {line[:40]!r} has a backslash that begins no escape: write \\x5c for a backslash")
    return _ESCAPE.sub(character, line)
