"""Token kinds: which tokens of a sequence are special, which separate, and which are hidden by choice."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.backend import Host
from tui_transformer.engine.edits import VISIBLE
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, replace
from tui_transformer.text.vocabulary import Vocabulary

CONTENT = frozenset({"[UNK]", "[MASK]", "<unk>", "<mask>"})
"""Special entries that stand for a word of the text: they are never hidden, and separate nothing."""

WRITTEN = "decoder tokens"
"""The sequence of a decoder beside an encoder, which may have words of its own."""

OPENING = frozenset({"[CLS]", "[BOS]", "<s>", "<pad>", "[PAD]", "<|begin_of_text|>"})
"""Special entries that begin a text or fill it up, and separate nothing."""


@dataclass(frozen=True)
class Hidden:
    """Which tokens are left out of attention: off by default.

    Special ones are `[CLS]`, `[SEP]`, `<s>`, `</s>`, `<|endoftext|>` …, not the unknown word or `[MASK]`; at the first
    token heads look when they have nothing to say (Xiao et al. 2023).
    """

    special: bool = False
    first: bool = False

    @property
    def active(self) -> bool:
        """True if anything is hidden."""
        return self.special or self.first

    @property
    def text(self) -> str:
        """Note on the screen while something is hidden; else ""."""
        names = [name for name, chosen in (("special tokens", self.special), ("first token", self.first)) if chosen]
        return f"{' and '.join(names)} hidden, rows renormalised" if names else ""

    def turned(self, which: str = "") -> Hidden:
        """Tokens of one name, `special` or `first`, hidden or shown again; by default the next of none, one, both."""
        if which:
            return replace(self, **{which: not getattr(self, which)})
        return Hidden(not self.special, self.first != self.special)


NOTHING = Hidden()
"""The choice that hides nothing."""


KINDS = ("special", "punctuation", "number", "word", "other")
"""The kinds that tokens are counted by; every token has one."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """One token sequence: the ID of each, which are real (no padding), special and separating, and their words."""

    ids: Host
    real: Host
    special: Host
    separating: Host
    vocabulary: Vocabulary | None = None

    @cached_property
    def kinds(self) -> Host:
        """The kind of every token, as a number in `KINDS`; other where there are no words."""
        ids = self.ids.tolist()
        known = {token_id: KINDS.index(_kind(self.vocabulary, token_id)) for token_id in set(ids)}
        return np.array([known[token_id] for token_id in ids], dtype=np.int64)

    @property
    def first(self) -> int:
        """The first token that is no padding."""
        return int(self.real.argmax())

    def hidden(self, choice: Hidden) -> Host:
        """True for every token that a choice hides."""
        hidden: Host = self.special & choice.special
        if choice.first and hidden.size:
            hidden = hidden.copy()
            hidden[self.first] = True
        return hidden


def tokens_of(trace: Trace, vocabulary: Vocabulary | None, axis: Axis, item: int = 0) -> Tokens:
    """The tokens along an axis of queries or keys. Without a vocabulary none is special and none separates."""
    names = (name for name in trace.givens if name.endswith("input.ids"))
    by_sequence = {trace.program.axes(name)[0].sequence: trace.givens[name] for name in names}
    ids = np.full(axis.size, -1, dtype=np.int64)
    given = by_sequence.get(axis.sequence)
    if given is not None:  # −1 where the model reads none, or for tokens that are not in this trace
        count = min(given.shape[1], axis.size)
        ids[axis.size - count :] = given[item][:count]
    if vocabulary is not None and axis.sequence == WRITTEN:
        vocabulary = vocabulary.written
    special = _marked(ids, vocabulary, is_special)
    separating = _marked(ids, vocabulary, is_separator)
    return Tokens(ids, real_tokens(trace, axis, item), special, separating, vocabulary)


def is_special(vocabulary: Vocabulary, token_id: int) -> bool:
    """True if an ID stands for no text of the sentence."""
    if token_id >= vocabulary.size or token_id == vocabulary.unknown_id:
        return False
    known = token_id in vocabulary.special_ids or token_id == vocabulary.pad_id
    return known and vocabulary.word(token_id) not in CONTENT


def is_separator(vocabulary: Vocabulary, token_id: int) -> bool:
    """True if an ID is a special token that ends or parts texts, or a punctuation mark."""
    if is_special(vocabulary, token_id):
        return token_id != vocabulary.pad_id and vocabulary.word(token_id) not in OPENING
    word = vocabulary.word(token_id) if token_id < vocabulary.size else ""
    bare = word.strip("#Ġ▁ ") or word.strip()
    return bool(bare) and all(unicodedata.category(character).startswith("P") for character in bare)


def _kind(vocabulary: Vocabulary | None, token_id: int) -> str:
    """The kind of a token: by its first character, once the marks of pieces are taken off."""
    if vocabulary is None or not 0 <= token_id < vocabulary.size:
        return "other"
    if is_special(vocabulary, token_id):
        return "special"
    if is_separator(vocabulary, token_id):
        return "punctuation"
    first = vocabulary.word(token_id).lstrip("#Ġ▁ ")[:1]
    return "number" if first.isdigit() else "word" if first.isalpha() or first in ("[", "<") else "other"


def _marked(ids: Host, vocabulary: Vocabulary | None, test: Callable[[Vocabulary, int], bool]) -> Host:
    if vocabulary is None:
        return np.zeros(ids.shape, dtype=np.bool_)
    known = _KNOWN.setdefault(vocabulary, {})
    listed = ids.tolist()
    for token_id in set(listed):
        if (test, token_id) not in known:
            known[test, token_id] = token_id >= 0 and test(vocabulary, token_id)
    return np.array([known[test, token_id] for token_id in listed], dtype=np.bool_)


_KNOWN: WeakKeyDictionary[Vocabulary, dict[tuple[Callable[[Vocabulary, int], bool], int], bool]] = WeakKeyDictionary()
"""Answers about the words of each vocabulary, since every attention step asks again."""


def real_tokens(trace: Trace, axis: Axis, item: int = 0) -> Host:
    """True for every token along an axis that is not padding; all of them where there is nothing but padding."""
    real: Host = np.ones(axis.size, dtype=np.bool_)
    for name, array in trace.givens.items():
        if name.endswith(VISIBLE) and trace.program.axes(name)[0].sequence == axis.sequence and array[item].any():
            real = array[item]
    return real
