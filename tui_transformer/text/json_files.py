"""The small JSON files beside a tokenizer: tables of IDs, options, tokens that were added or are around a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.records import dataclass, field
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import without_surrogates
from tui_transformer.text.files import MAX_BYTES, shown_path
from tui_transformer.text.vocabulary import MAX_ENTRIES

OPTIONS = "tokenizer_config.json"
ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
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
    """Contents of `added_tokens.json` (IDs) and `special_tokens_map.json` (roles as `unk_token`, and more tokens).

    Roles that are not there are those of `tokenizer_config.json`.
    """

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
    named = {role: value for role, value in sibling_options(path).items() if role in ROLES}
    roles = {role: _special(value, where) for role, value in {**named, **options}.items() if value is not None}
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


CLASSES: Mapping[str, str] = {
    "albert": "AlbertTokenizer",
    "pegasus": "PegasusTokenizer",
    "mpnet": "MPNetTokenizer",
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "GemmaTokenizer"),
}
"""Families whose files are named as those of others and read in another way → their `tokenizer_class`."""


def class_of(path: Path) -> str:
    """The `tokenizer_class` beside a vocabulary, without "Fast"; "" where neither options nor configuration tell it."""
    config = sibling_options(path, "config.json")
    named = sibling_options(path).get("tokenizer_class") or config.get("tokenizer_class")
    return str(named or CLASSES.get(str(config.get("model_type")), "")).removesuffix("Fast")


FRAMES: Mapping[str, tuple[str, ...]] = {
    "GPT2Tokenizer": (),
    "RobertaTokenizer": ("<s>", "</s>"),
    "BartTokenizer": ("<s>", "</s>"),
}
"""The tokens around a text, for each `tokenizer_class` that is whole in `vocab.json` and `merges.txt`."""

_OF_BERT = "Bert DistilBert Electra MobileBert SqueezeBert ConvBert RetriBert LayoutLM Lxmert"
PIECE_FRAMES: Mapping[str, tuple[str, ...]] = {
    **{f"{name}Tokenizer": ("[CLS]", "[SEP]") for name in _OF_BERT.split()},
    "MPNetTokenizer": ("<s>", "</s>"),
}
"""The same for each that is whole in `vocab.txt`."""

_ENDS = ("cls_token", "sep_token")
"""Who stands before and after a text."""

_ASKED, TEXT_END = ("bos_token", "eos_token"), "<|endoftext|>"
"""Who stands there only where it is asked for, and what GPT-2 calls both."""


def frame_of(
    path: Path, frames: Mapping[str, tuple[str, ...]], usual: str, added: Added, known: Callable[[str], int | None]
) -> tuple[str, ...]:
    """The tokens around a text, "" for none: as the named class has them, else those of the usual one if all are known.

    Raises:
        InputError: The named class is none of `frames`, or has tokens that are not known.
    """
    options, kind = sibling_options(path), class_of(path)
    frame = frames.get(kind or usual)
    if frame:
        frame = tuple(added.named(role, word) for role, word in zip(_ENDS, frame, strict=True))
    elif frame is not None:
        asked = (options.get(f"add_{role}") is True for role in _ASKED)
        frame = tuple(added.named(role, TEXT_END) if add else "" for add, role in zip(asked, _ASKED, strict=True))
    there = frame is not None and all(not word or known(word) is not None for word in frame)
    if not kind:
        return frame if frame and there else ()
    if frame is None or not there:
        raise InputError(f"{shown_path(path)} is not the whole of a {visible(kind[:60])}: a tokenizer.json is needed")
    return frame
