r"""The first line of a vocabulary file that is no plain list of words, and entries that such a list could not hold.

`#!vocabulary characters` or `#!vocabulary words`, then what the special words are called where they are not called
`[PAD]`, `[UNK]`, `[BOS]` and `[EOS]`: `padding=<pad> unknown=<unk> begin=<s> end=</s>`; of words also what a word is,
`split=spaces case=kept` (see `word_rule`). The entries follow, one a line;
of characters, those that cannot be seen and the backslash are written as `\x0a` or `\u2028`.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Literal, get_args

from tui_transformer.errors import InputError
from tui_transformer.text.specials import SPECIALS, Specials
from tui_transformer.text.word_rule import RULE, WordRule

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
    kinds = get_args(Listed)
    if kind not in kinds:
        raise InputError(f"its first line says {kind[:40]!r}: write {MARK} and {' or '.join(kinds)}")
    given = dict(option.partition("=")[::2] for option in options)
    named = dict(SPECIALS.to_options())
    known = {*named, *(field.name for field in dataclasses.fields(RULE))} if kind == "words" else {*named}
    if odd := sorted(set(given) - known):
        raise InputError(f"its first line says {odd[0][:40]!r}: only {', '.join(sorted(known))} can be named")
    listed: Listed = "characters" if kind == "characters" else "words"
    specials = Specials(**{name: given.get(name, usual) for name, usual in named.items()})
    return Header(listed, specials, WordRule(**{name: given[name] for name in given if name not in named}))


def escaped(entry: str) -> str:
    r"""An entry as a line holds it: a line break is `\x0a`, a space `\x20`, a backslash `\x5c`."""
    return "".join(character if _is_plain(character) else _escape(ord(character)) for character in entry)


def _is_plain(character: str) -> bool:
    return character.isprintable() and not character.isspace() and character != "\\"


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unescaped(line: str) -> str:
    """The entry that a line holds.

    Raises:
        InputError: A backslash begins no escape.
    """
    if "\\" in _ESCAPE.sub("", line):
        raise InputError(f"the entry {line[:40]!r} has a backslash that begins no escape: write \\x5c for a backslash")
    return _ESCAPE.sub(lambda match: _character(match), line)


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or match[2] or match[3], 16)
    if code > _LARGEST:
        raise InputError(f"{match[0]} is no character: they go up to \\U{_LARGEST:08x}")
    return chr(code)
