"""The parts of a model: a built-in one by its name and settings, or a checkpoint."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tui_transformer.engine.backend import choose_backend
from tui_transformer.engine.keep import check_memory
from tui_transformer.engine.program import Program
from tui_transformer.engine.weights import Weights, fixed_weights, random_weights
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import checkpoint
from tui_transformer.model.checks import shown
from tui_transformer.model.config import Config
from tui_transformer.model.families import Family, ModelConfig
from tui_transformer.model.families.attention import ATTENTION, AttentionConfig, example_weights
from tui_transformer.model.families.base import target_size
from tui_transformer.model.families.vanilla import VANILLA
from tui_transformer.model.fitting import fit
from tui_transformer.model.local_models import find_model, nowhere
from tui_transformer.model.new_embedding import NORMAL, NewEmbedding
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.word_vectors import WordVectors, read_vectors
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.vocabulary import Vocabulary

BUILT_IN = ("encoder", "decoder", "encoder-decoder", "attention")
DEFAULT_SEED = 0
HEADS = 8
SMALL = 1_000_000
"""Weights of a model that is computed before a GPU would have been started."""

Words = str | Path | Vocabulary | None
"""A built-in vocabulary's name, a file or a vocabulary; None for the model's own."""


@dataclass(frozen=True, eq=False)
class Parts:
    """A model without what it does: what was opened or made.

    Attributes:
        name: What it is called on screen: a built-in name or the folder's.
        tokenizer: None where the model reads no text (the attention example), or has no vocabulary.
        seed: Of random weights; None where the weights were read.
        folder: Where the weights were read, None for a built-in model.
        embedding: How the table of words of a built-in model began.
        unread: Tensors of the folder that no step reads.
    """

    name: str
    family: Family
    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer | None
    seed: int | None = None
    folder: Path | None = None
    embedding: NewEmbedding | None = None
    unread: tuple[str, ...] = ()


class Where(NamedTuple):
    """Where a model is computed, and in what precision."""

    device: str
    dtype: str


class New(NamedTuple):
    """How the weights of a built-in model begin; None for the default.

    Attributes:
        embedding: How the table of words begins: "normal", "uniform" or "zeros".
        vectors: A file of word vectors, or those of a file.
    """

    seed: int | None = None
    embedding: str | None = None
    vectors: str | Path | WordVectors | None = None


def load(where: str | Path, words: Words, at: Where, new: New, sizes: Mapping[str, Any]) -> Parts:
    """The parts of a built-in model or a checkpoint.

    Raises:
        InputError: What was given cannot be used.
    """
    if isinstance(where, str) and where in BUILT_IN:
        return _built_in(where, words, at, new, sizes)
    if sizes or any(value is not None for value in new):
        given = ", ".join([*sizes, *(name for name, value in new._asdict().items() if value is not None)])
        raise UsageError(f"{given}: the sizes and weights of {where} are in its folder and cannot be set")
    return _from_folder(where, words, at)


@functools.lru_cache(maxsize=32)
def program_of(family: Family, config: ModelConfig, lengths: Lengths) -> Program:
    """The program of a family; those that were asked for last are kept."""
    return family.program(config, lengths)


def _built_in(name: str, words: Words, at: Where, new: New, sizes: Mapping[str, Any]) -> Parts:
    seed = DEFAULT_SEED if new.seed is None else new.seed
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed {shown(seed)} is not a whole number from 0")
    if name == "attention":
        if new.embedding is not None or new.vectors is not None:
            raise UsageError("the attention example reads no words: it has no embedding")
        return _attention_example(at, sizes)
    _check_settings(sizes, Config)
    if "decoder_layers" in sizes and name != "encoder-decoder":
        raise UsageError(f"decoder_layers is a setting of the encoder-decoder: set layers of the {name}")
    known = _vocabulary(words or "waves")
    start = {"start_id": known.ids.get("[BOS]", 0)} if name == "encoder-decoder" else {}
    given: dict[str, Any] = {"architecture": name, "vocab_size": known.size, "pad_id": known.pad_id, **start}
    vectors = new.vectors if isinstance(new.vectors, WordVectors | None) else read_vectors(Path(new.vectors), known)
    embedding = NewEmbedding(new.embedding or NORMAL, vectors)
    config = Config(**given | fitting(vectors, sizes) | dict(sizes))
    count = program_of(VANILLA, config, Lengths(1, 1)).weight_count()
    backend = choose_backend(*at, small=count < SMALL)
    check_memory(count * backend.dtype.itemsize, f"{count:,} weights need", "choose smaller sizes")
    weights = Weights(backend, embedding.over(random_weights(seed), seed))
    return Parts(name, VANILLA, config, weights, tokenizer_for(known), seed, embedding=embedding)


def fitting(vectors: WordVectors | None, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes that vectors ask for: their width, and as many heads as divide it."""
    if vectors is None:
        return {}
    if sizes.get("d_model", vectors.width) != vectors.width:
        raise UsageError(f"d_model {sizes['d_model']}: the vectors of {vectors.path} have {vectors.width} numbers")
    heads = next(count for count in range(HEADS, 0, -1) if vectors.width % count == 0)
    return {"d_model": vectors.width, "heads": heads}


def _attention_example(at: Where, sizes: Mapping[str, Any]) -> Parts:
    _check_settings(sizes, AttentionConfig)
    config, given = AttentionConfig(**sizes), AttentionConfig()
    if (config.length, config.width) != (given.length, given.width):
        raise UsageError(f"Q, K and V of the attention example are given: {given.length} rows of {given.width}")
    weights = Weights(choose_backend(*at, small=True), fixed_weights(example_weights()))
    return Parts("attention", ATTENTION, config, weights, None)


def _from_folder(where: str | Path, words: Words, at: Where) -> Parts:
    local = find_model(where)
    if local is None:
        raise nowhere(where)
    family, config = checkpoint.read_config(local.folder)
    tensors = checkpoint.open_tensors(local.folder)
    config, tensors = fit(family, config, tensors)
    program = program_of(family, config, Lengths(1, 1))
    stored = checkpoint.stored_weights(tensors, family, config, program)
    chosen = words or checkpoint.own_vocabulary(local.folder)
    known = None if chosen is None else _vocabulary(chosen)
    tokenizer = None if known is None else tokenizer_for(known)
    if tokenizer is not None:
        _check_vocabulary(tokenizer.vocabulary, config.vocab_size)
        _check_vocabulary(tokenizer.vocabulary.written, target_size(config))
    backend = choose_backend(*at, small=program.weight_count() < SMALL)
    weights, left = Weights(backend, stored.whole, file=stored), stored.unread(family, config)
    return Parts(local.name, family, config, weights, tokenizer, folder=local.folder, unread=left)


def _check_vocabulary(words: Vocabulary, rows: int) -> None:
    if words.rows > rows:
        raise InputError(f"vocabulary {words.name} has {words.rows} words, the model {rows} embedding rows")


def _vocabulary(where: str | Path | Vocabulary) -> Vocabulary:
    return where if isinstance(where, Vocabulary) else load_vocabulary(where)


def _check_settings(sizes: Iterable[str], config: type) -> None:
    known = [field.name for field in dataclasses.fields(config) if field.init]
    for key in sizes:
        if key not in known:
            raise UsageError(f"{key} is not a setting of this model: {', '.join(known)} are")
