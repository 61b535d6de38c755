"""The small JSON files beside a tokenizer: tables of IDs, options, and tokens that were added."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.records import dataclass, field
from tui_transformer.text.encoding import without_surrogates
from tui_transformer.text.files import MAX_BYTES, shown_path
from tui_transformer.text.vocabulary import MAX_ENTRIES

OPTIONS = "tokenizer_config.json"
ADDED, SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"
"""Files beside a vocabulary of word pieces or byte pairs, which add tokens to it."""


def read_ids(path: Path) -> dict[str, int]:
    """A table of pieces and IDs.

    Raises:
        InputError: A value is no ID.
    """
    ids = read_json(path, MAX_BYTES)
    if any(word != without_surrogates(word) for word in ids):
        raise InputError(f"{shown_path(path)} has a piece that is no text (half a surrogate pair): copy the file again")
    if not all(type(token_id) is int and 0 <= token_id < MAX_ENTRIES for token_id in ids.values()):
        raise InputError(f"{shown_path(path)} is no table of pieces and IDs: every value is a whole number from 0")
    return ids


def sibling_options(path: Path, name: str = OPTIONS) -> dict[str, Any]:
    """The object in the file of this name beside another; nothing where there is none."""
    sibling = path.with_name(name)
    return read_json(sibling, MAX_BYTES) if sibling.exists() else {}


@dataclass(frozen=True)
class Special:
    """A special token, and how the white space around it is treated where the file says."""

    content: str
    flags: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Added:
    """Contents of `added_tokens.json` (IDs) and `special_tokens_map.json` (roles as `unk_token`, and more tokens)."""

    ids: Mapping[str, int]
    roles: Mapping[str, Special]
    more: tuple[Special, ...]

    def named(self, role: str, otherwise: str) -> str:
        """The token of a role, where the file names one."""
        return self.roles[role].content if role in self.roles else otherwise

    @property
    def special(self) -> tuple[Special, ...]:
        """All special tokens."""
        return (*self.roles.values(), *self.more)


def sibling_tokens(path: Path) -> Added:
    """Contents of the two files beside a vocabulary.

    Raises:
        InputError: They are broken.
    """
    added = path.with_name(ADDED)
    ids = read_ids(added) if added.exists() else {}
    options = sibling_options(path, SPECIAL_MAP)
    where = shown_path(path.with_name(SPECIAL_MAP))
    more = options.pop("additional_special_tokens", None) or []
    if not isinstance(more, list):
        raise InputError(f"{where}: additional_special_tokens is no list: copy the file again")
    roles = {role: _special(value, where) for role, value in options.items() if value is not None}
    return Added(ids, roles, tuple(_special(value, where) for value in more))


def _special(value: object, where: str) -> Special:
    """A token as it is written, or as an object with its text and flags."""
    content = value.get("content") if isinstance(value, dict) else value
    if isinstance(content, str) and content and content == without_surrogates(content):
        if not isinstance(value, dict):
            return Special(content)
        flags = ("lstrip", "rstrip", "single_word", "normalized")
        return Special(content, {flag: value[flag] for flag in flags if isinstance(value.get(flag), bool)})
    raise InputError(f"{where} has the token {str(value)[:60]!r}: a token is a text, or an object with its content")
