"""What a command or a person asks for: which model, the input that it reads, and what is put around that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_transformer.engine.parts import DEFAULT_BUDGET
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.model import Model
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.encoding import Encoding, Token, within
from tui_transformer.text.files import read_lines, shown_path
from tui_transformer.text.vocabulary_rules import PADDING

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Framing:
    """The tokens that are put around a sentence.

    Attributes:
        bracket: The vocabulary's begin and end words.
        pad_to: Tokens that a sentence has with its padding; None for none but that of its batch.

    Raises:
        UsageError: A length below 1.
    """

    bracket: bool = False
    pad_to: int | None = None

    def __post_init__(self) -> None:
        if self.pad_to is not None and self.pad_to < 1:
            raise UsageError(f"pad_to {self.pad_to} is not a number of tokens from 1")


PLAIN = Framing()


@dataclass(frozen=True)
class Batch:
    """Sentences of as many tokens each, and of each which tokens are real (1) and which padding (0).

    Attributes:
        masks: None where nothing was padded: then what is padding is seen from the pad ID.
    """

    encodings: tuple[Encoding, ...]
    masks: tuple[Ids, ...] | None = None

    def length(self, item: int) -> int:
        """How many tokens of a sentence are no padding that was put behind it."""
        return len(self.encodings[item].tokens) if self.masks is None else sum(self.masks[item])

    @property
    def ids(self) -> list[Ids]:
        """The token IDs, a row a sentence."""
        return [encoding.ids for encoding in self.encodings]


def batch_of(model: Model, encodings: Sequence[Encoding], framing: Framing = PLAIN, *, cut: bool = False) -> Batch:
    """The sentences with what is put around them, the shorter ones padded at the end.

    Args:
        model: Whose words and length count.
        encodings: The sentences.
        framing: What is put around them.
        cut: Leave out the last words of one that is too long with its frame, rather than refuse it.

    Raises:
        InputError: One has more tokens than it is to be padded to, or the vocabulary has no begin and end.
    """
    whole = [bracketed(model, encoding) if framing.bracket else encoding for encoding in encodings]
    if cut:
        most = min(model.most_tokens, framing.pad_to or model.most_tokens)
        whole = [within(encoding, most) for encoding in whole]
    width = max(len(encoding.tokens) for encoding in whole)
    if framing.pad_to is not None:
        if width > framing.pad_to:
            too_long = f"{width} tokens are more than the {framing.pad_to} that they are to be padded to"
            raise InputError(f"{too_long}: use a shorter sentence, or --cut")
        width = framing.pad_to
    if all(len(encoding.tokens) == width for encoding in whole):
        return Batch(tuple(whole))
    masks = tuple(tuple(int(i < len(encoding.tokens)) for i in range(width)) for encoding in whole)
    return Batch(tuple(_padded(model, encoding, width) for encoding in whole), masks)


def bracketed(model: Model, encoding: Encoding) -> Encoding:
    """The sentence between the begin and the end of its vocabulary, where they are not there.

    Raises:
        InputError: The vocabulary has none.
    """
    words = model.vocabulary
    if words is None:
        raise InputError(f"{model.name} has no vocabulary: put the IDs of beginning and end into --ids")
    begin, end = words.around_ids
    if begin is None or end is None:
        raise InputError(f"the vocabulary {words.name} has no words for beginning and end, such as [BOS] and [EOS]")
    tokens, last = encoding.tokens, len(encoding.text)
    before = () if tokens and tokens[0].id == begin else (Token(begin, words.word(begin), 0, 0, special=True),)
    after = () if tokens and tokens[-1].id == end else (Token(end, words.word(end), last, last, special=True),)
    segments = encoding.segments
    if segments is not None:
        segments = (*segments[:1] * len(before), *segments, *segments[-1:] * len(after))
    return replace(encoding, tokens=(*before, *tokens, *after), segments=segments)


def _padded(model: Model, encoding: Encoding, width: int) -> Encoding:
    """The sentence with padding at its end; where nothing is called so, ID 0, which the mask hides."""
    words, last = model.vocabulary, len(encoding.text)
    own = model.config.pad_id if words is None or words.pad_id is None else words.pad_id
    pad = Token(own or 0, PADDING if own is None else model.word(own), last, last, special=True)
    more = (pad,) * (width - len(encoding.tokens))
    segments = None if encoding.segments is None else (*encoding.segments, *(0 for _ in more))
    return replace(encoding, tokens=(*encoding.tokens, *more), segments=segments)


@dataclass(frozen=True)
class ModelOptions:
    """Which model, in what precision and where, and how much of a trace may be kept.

    Attributes:
        model: A built-in name or a checkpoint folder.
        vocab: A built-in vocabulary's name or a file; None for the model's own.
        seed: Of the random weights of a built-in model; None for its default.
        sizes: Only the settings that were given, by their names in `config.json`.
        budget: Bytes of a trace that may be kept.
        cut: A sentence that is too long is cut instead of refused.
        embedding: How the table of words of a built-in model begins; None for the default.
        vectors: A file of word vectors for it.
        unknown: What unknown words are: "token", "zero" or "error".
    """

    model: str = "encoder"
    vocab: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    seed: int | None = None
    sizes: Mapping[str, Any] = field(default_factory=dict)
    budget: int = DEFAULT_BUDGET
    cut: bool = False
    framing: Framing = PLAIN
    embedding: str | None = None
    vectors: str | None = None
    unknown: str = "token"

    def load(self) -> Model:
        """The model.

        Raises:
            InputError: Something that was given cannot be used.
        """
        return Model.load(
            self.model,
            vocabulary=self.vocab,
            device=self.device,
            dtype=self.dtype,
            seed=self.seed,
            embedding=self.embedding,
            vectors=self.vectors,
            unknown=self.unknown,
            **self.sizes,
        )


@dataclass(frozen=True)
class Reading:
    """A sentence, or one of several, and what a decoder beside an encoder has written; None for what was not given.

    Attributes:
        ids: Its token IDs instead.
        pair: A second sentence beside the text, for a model that reads pairs.
        mask: 1 for every token of the sentence that is read and 0 for padding.
        decoder_text: What the decoder has written so far, without its start token.
        decoder_ids: Its token IDs instead, start token included.
        batch: All sentences, where there are several: each its text, or its token IDs.
        item: Which of them the text or the IDs are.
    """

    text: str | None = None
    ids: Ids | None = None
    pair: str | None = None
    mask: Ids | None = None
    decoder_text: str | None = None
    decoder_ids: Ids | None = None
    batch: tuple[str | Ids, ...] = ()
    item: int = 0


Listen = Callable[[Encoding], object]
"""Told of every text that was read, as that of its unknown words."""


def ignore(_: Encoding) -> None:
    """Nobody wants to know what is read."""


def texts_of(path: Path) -> Iterator[str]:
    """The lines of a text file that hold something.

    Raises:
        InputError: The file cannot be read, or holds nothing.
    """
    text = None
    for text in filter(str.strip, read_lines([path])):
        yield text.rstrip("\r\n")
    if text is None:
        raise InputError(f"{shown_path(path)}: no text in it: write a sentence on each line")


def traced(model: Model, texts: Iterable[str], listen: Listen = ignore) -> Iterator[Trace]:
    """The trace of each text, cut to what the model reads; nothing of it is kept.

    Raises:
        InputError: A text has no tokens, or the model has no vocabulary.
    """
    for text in texts:
        encoding = model.encode(text, cut=True)
        listen(encoding)
        yield model.trace(ids=encoding.ids, segments=encoding.segments, budget=0)
