"""The input of a session: sentences, their tokens, and the trace of them before it is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from tui_transformer.engine.parts import DEFAULT_BUDGET
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.options import PLAIN, Batch, Framing, batch_of
from tui_transformer.model.targets import Ids
from tui_transformer.records import InitVar, dataclass, field, replace
from tui_transformer.text.encoding import Encoding, Token
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.views.step_view import Labels

SOURCE, TARGET = "tokens", "decoder tokens"
"""The names of the token sequences."""

MASKS = ("[MASK]", "<mask>")
"""A token in whose place a word is predicted."""

Result = TypeVar("Result")
_MISSING: Any = object()


class Kept(Generic[Result]):
    """A property that is worked out once, and then is in a part of the cache."""

    def __init__(self, part: str, make: Callable[[Any], Result]) -> None:
        self._part, self._make, self.__doc__ = part, make, make.__doc__

    def __get__(self, read: Any, _: type) -> Result:
        memo: Memo = getattr(read.cache, self._part)
        return memo.made(self._make.__name__, lambda: self._make(read))


def kept(part: str) -> Callable[[Callable[[Any], Result]], Kept[Result]]:
    """What follows from the values that this part of the cache is of."""
    return partial(Kept, part)


@dataclass(frozen=True, eq=False)
class Sentences:
    """A model and what it reads. Never changed.

    Attributes:
        model: The model.
        text: The sentence; "" where IDs are given, or where the model reads none.
        ids: Token IDs instead of a sentence.
        budget: Bytes that the trace may keep.
        cut: A sentence that is too long is cut instead of refused.
        framing: What is put around the sentence.
        batch: All sentences, where there are several: each its text, or its token IDs.
        item: Which of them the text or the IDs are.
        pair: A second sentence beside the text, for a model that reads pairs.
        mask: 1 for every token of the sentence that is read and 0 for padding; None for what the pad IDs say.
        decoder_text: What a decoder beside an encoder has written so far, without its start token.
        decoder_ids: Its token IDs instead, start token included.
        breaks: What is computed otherwise on purpose, by name.
        cache: What was worked out of it. A session that is made with `replace` has a new one, unless it is `given` the
            results that it shares with another.
    """

    model: Model
    text: str = ""
    ids: tuple[int, ...] | None = None
    budget: int = DEFAULT_BUDGET
    cut: bool = False
    framing: Framing = PLAIN
    batch: tuple[str | Ids, ...] = ()
    item: int = 0
    pair: str | None = None
    mask: tuple[int, ...] | None = None
    decoder_text: str = ""
    decoder_ids: tuple[int, ...] | None = None
    breaks: tuple[str, ...] = ()
    given: InitVar[Cache | None] = None
    cache: Cache = field(init=False, repr=False)

    def __post_init__(self, given: Cache | None) -> None:
        object.__setattr__(self, "cache", Cache() if given is None else given)

    @property
    def encoding(self) -> Encoding:
        """The tokens and where they lie in the sentence, with what is put around it."""
        return self.framed.encodings[self.item]

    @property
    def sentence(self) -> str:
        """The sentence; where token IDs are given, as they read."""
        return self.text or self.encoding.text

    @kept("tokens")
    def framed(self) -> Batch:
        """The sentence, or all of them, with what is put around them."""
        model = self.model
        if not model.config.vocab_size:
            return Batch((Encoding("", ()),))
        encodings = [
            model.encode(given, cut=self.cut, pair=self.pair) if isinstance(given, str) else _read_back(model, given)
            for given in self.batch or (self.text if self.ids is None else self.ids,)
        ]
        return batch_of(model, encodings, self.framing, cut=self.cut)

    @property
    def mask_read(self) -> Ids | None:
        """The mask, also that of a sentence that is padded to the length of others."""
        masks = self.framed.masks
        return masks[self.item] if self.mask is None and masks is not None else self.mask

    @kept("tokens")
    def decoder_encoding(self) -> Encoding | None:
        """The decoder's tokens, where it has a sequence of its own."""
        model = self.model
        if not model.has_decoder:
            return None
        if self.decoder_ids is not None:
            return _written(model.target_word, self.decoder_ids)
        if model.reads_again and not self.decoder_text:
            return _written(model.target_word, model.read_again(self.encoding.ids))
        return model.encode_target(self.decoder_text, cut=self.cut)

    @kept("tokens")
    def sequences(self) -> dict[str, Encoding]:
        """The token sequences by name: one, or source and target."""
        own, target = self.encoding, self.decoder_encoding
        return ({SOURCE: own} if own.tokens else {}) | ({} if target is None else {TARGET: target})

    @kept("tokens")
    def base(self) -> Trace:
        """The trace without edits."""
        if not self.model.config.vocab_size:
            trace = self.model.trace(budget=self.budget)
        else:
            target = self.decoder_encoding
            trace = self.model.trace(
                ids=self.encoding.ids,
                mask=self.mask_read,
                decoder_ids=None if target is None else target.ids,
                segments=self.encoding.segments,
                budget=self.budget,
            )
        if not self.breaks:
            return trace
        from tui_transformer.diagnosis.breaking import broken

        return broken(trace, self.breaks)

    @kept("tokens")
    def labels(self) -> Labels:
        """The words beside rows and columns."""
        model = self.model
        words = {name: tuple(model.label(token.text) for token in own.tokens) for name, own in self.sequences.items()}
        return Labels(words, model.target_label, model.word_label) if words else Labels()

    @property
    def predicted(self) -> Ids:
        """The tokens at whose positions predictions are made."""
        return (self.decoder_encoding or self.encoding).ids

    @property
    def masked(self) -> int | None:
        """The first token that is masked."""
        if self.model.has_decoder or self.model.config.vocab_size == 0:
            return None
        return next((place for place, token in enumerate(self.encoding.tokens) if token.text in MASKS), None)

    @property
    def answer_rows(self) -> range:
        """Where the answer is read: at a masked token where there is one; without logits all rows but padding."""
        place = self.masked if self.base.program.logits else None
        if place is not None:
            return range(place, place + 1)
        from tui_transformer.analysis.effects import answer_positions

        return answer_positions(self.base, folder=self.model.folder)

    def words_of(self, sequence: str) -> Vocabulary | None:
        """The words of a token sequence: a decoder may write others than its encoder reads."""
        return self.model.target_vocabulary if sequence == TARGET else self.model.vocabulary


def _read_back(model: Model, ids: tuple[int, ...]) -> Encoding:
    """Token IDs as the text that is read as them; where there is none, as a sentence of their words."""
    from tui_transformer.generation.text import token_texts

    words = model.vocabulary
    if words is not None and words.kind != "words":  # else their words are that text
        with suppress(InputError):
            read = model.encode("".join(token_texts(model, ids, source=True)))
            if read.ids == ids:
                return replace(read, segments=None)
    return _written(model.word, ids)


def _written(named: Callable[[int], str], ids: tuple[int, ...]) -> Encoding:
    """Token IDs as a sentence of their words."""
    tokens, start = [], 0
    for token_id in ids:
        word = named(token_id)
        tokens.append(Token(token_id, word, start, start + len(word)))
        start += len(word) + 1
    return Encoding(" ".join(token.text for token in tokens), tuple(tokens))


class Memo(dict[str, Any]):
    """Results by name, each worked out once."""

    def made(self, name: str, make: Callable[[], Result]) -> Result:
        """A result, worked out if it is not there; what another thread kept in the meantime stays, and is given."""
        result: Result = self.get(name, _MISSING)
        return self.setdefault(name, make()) if result is _MISSING else result

    @property
    def held_bytes(self) -> int:
        """Bytes that the traces and gradients among the results keep, and other sessions."""
        results = (getattr(each, "cache", each) for each in [*self.values()])
        return sum(getattr(each, "held_bytes", 0) for each in results)


@dataclass(frozen=True, eq=False)
class Cache:
    """Results of a session, by what they depend on; sessions for which that is the same share them.

    Attributes:
        tokens: What follows from the model and its tokens: encodings, the trace without edits, labels, stops.
        edited: What follows from these and the edits: the trace.
        backward: What follows from these and the targets: loss, gradients and their norms.
        compared: What follows from these and the overlay: the other session, the comparison.
    """

    tokens: Memo = field(default_factory=Memo)
    edited: Memo = field(default_factory=Memo)
    backward: Memo = field(default_factory=Memo)
    compared: Memo = field(default_factory=Memo)

    @property
    def memos(self) -> tuple[Memo, ...]:
        """All of them."""
        return self.tokens, self.edited, self.backward, self.compared

    @property
    def held_bytes(self) -> int:
        """Bytes that they keep."""
        return sum(memo.held_bytes for memo in self.memos)

    def keeping(self, *names: str) -> Cache:
        """A cache with these results alone, which a change leaves true."""
        return Cache(**{name: getattr(self, name) for name in names})


def let_go(far: Iterable[Cache], near: Iterable[Cache]) -> None:
    """Forget what was worked out of sessions that are far away, but for what they share with nearer ones."""
    kept = {id(memo) for cache in near for memo in cache.memos}
    for cache in far:
        for memo in cache.memos:
            if id(memo) not in kept:
                memo.clear()
