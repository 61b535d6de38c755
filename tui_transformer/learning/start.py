"""The trainer that settings describe, before its first step."""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.weights import Reader, Weights
from tui_transformer.errors import UsageError
from tui_transformer.learning.data import read_data, vocabulary_for
from tui_transformer.learning.loop import Trainer
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.tasks import task_of
from tui_transformer.model.loading import fitting
from tui_transformer.model.model import Model
from tui_transformer.model.word_vectors import NORMAL, NewEmbedding, read_vectors
from tui_transformer.text.dispatch import load_vocabulary

SIZES: dict[str, Any] = {"d_model": 128, "heads": 4, "layers": 2, "norm": "pre", "bias": True, "scale_embedding": True}
"""A new model where nothing else is said; its d_ff is 4 · d_model."""


def new_trainer(settings: Settings, lines: Sequence[str]) -> Trainer:
    """A trainer at step 0; InputError where settings, text and model do not go together."""
    model = _existing(settings) if settings.model else _new(settings, lines)
    return trainer(settings, model, lines)


def trainer(settings: Settings, model: Model, lines: Sequence[str], **more: Any) -> Trainer:
    """A trainer of this model; `more` is where it stands.

    InputError for one that does not fit the task or has no vocabulary.
    """
    masks = [step.op.causal for step in model.program(2).steps if isinstance(step.op, Mask)]
    alone = "decoder" if all(masks) else "encoder"
    wanted, given = task_of(settings.task).architecture, "encoder-decoder" if model.has_decoder else alone
    if wanted != given:
        raise UsageError(f"--task {settings.task} is for {_KINDS[wanted]}: {model.name} is {_KINDS[given]}")
    if model.tokenizer is None:
        raise UsageError(f"{model.name} has no vocabulary: name one with --vocab")
    if settings.length > model.config.max_length:
        raise UsageError(f"--length {settings.length}: {model.name} reads {model.config.max_length} tokens at most")
    data = read_data(settings, lines, model.tokenizer, model.config.start_id)
    return Trainer(settings, model, data, **more)


_KINDS = {
    "encoder": "an encoder",
    "decoder": "a decoder, in which no token sees a later one",
    "encoder-decoder": "an encoder-decoder",
}


def _existing(settings: Settings) -> Model:
    if settings.sizes:
        raise UsageError(f"{', '.join(settings.sizes)}: the sizes of {settings.model} are in its folder")
    if settings.vectors or settings.embedding != NORMAL:
        given = "vectors" if settings.vectors else "embedding"
        raise UsageError(f"--{given}: the embedding of {settings.model} is in its folder")
    vocabulary = settings.vocab or None
    return Model.load(settings.model, vocabulary=vocabulary, device=settings.device, dtype=settings.dtype)


def _new(settings: Settings, lines: Sequence[str]) -> Model:
    words = load_vocabulary(settings.vocab) if settings.vocab else vocabulary_for(settings, lines)
    vectors = read_vectors(Path(settings.vectors), words) if settings.vectors else None
    sizes: dict[str, Any] = {**SIZES, **(fitting(vectors, settings.sizes) if vectors else {}), **settings.sizes}
    architecture = sizes.pop("architecture", None) or task_of(settings.task).architecture
    sizes.setdefault("d_ff", 4 * sizes["d_model"])
    if sizes.get("positions") == "learned":
        sizes.setdefault("max_length", settings.length)
    if architecture == "encoder-decoder":
        sizes.setdefault("decoder_layers", sizes["layers"])
    model = Model.load(architecture, vocabulary=words, device=settings.device, dtype=settings.dtype, **sizes)
    embedding = NewEmbedding(settings.embedding, vectors)
    weights = Weights(model.backend, embedding.over(initial_weights(settings.seed), settings.seed))
    return dataclasses.replace(model, weights=weights, embedding=embedding)


def initial_weights(seed: int) -> Reader:
    """Matrices normal with variance 2 ÷ (in + out) (Glorot & Bengio 2010), embeddings with 1 ÷ d, biases 0, γ 1, β 0.

    Every weight has its own stream, from the seed and its name.
    """

    def read(name: str, shape: Shape) -> Host:
        if len(shape) < 2:
            return np.full(shape, 1.0 if name.endswith("norm.weight") else 0.0, dtype=np.float32)
        variance = 1.0 / shape[-1] if "embedding." in name else 2.0 / sum(shape)
        stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
        return stream.standard_normal(shape, dtype=np.float32) * np.float32(math.sqrt(variance))

    return read
