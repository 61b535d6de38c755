"""What a command or a person asks for: which model, and the input that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tui_transformer.engine.parts import DEFAULT_BUDGET
from tui_transformer.model.framing import PLAIN, Framing
from tui_transformer.model.model import Model


@dataclass(frozen=True)
class ModelOptions:
    """Which model, in what precision and where, and how much of a trace may be kept.

    Attributes:
        model: A built-in name or a checkpoint folder.
        vocab: A built-in vocabulary's name or a file; None for the model's own.
        device: "auto", "cpu" or "gpu".
        dtype: "float32" or "float64".
        seed: Of the random weights of a built-in model; None for its default.
        sizes: Only the settings that were given, by their names in `config.json`.
        budget: Bytes of a trace that may be kept.
        cut: A sentence that is too long is cut instead of refused.
        framing: What is put around a sentence.
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


Ids = tuple[int, ...]


@dataclass(frozen=True)
class Reading:
    """A sentence, or one of several, and what a decoder beside an encoder has written; None for what was not given.

    Attributes:
        text: The sentence.
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
