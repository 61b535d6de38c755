"""The parts of a model: a built-in one by its name and settings, or a checkpoint."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import choose_backend
from tui_transformer.engine.ops import Embed
from tui_transformer.engine.parts import check_memory
from tui_transformer.engine.program import Program
from tui_transformer.engine.weights import Weights, random_weights
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded, is_there
from tui_transformer.model import checkpoint
from tui_transformer.model.base_config import BaseConfig
from tui_transformer.model.checkpoint import fit
from tui_transformer.model.checks import LARGEST_SIZE, shown, size_up_to
from tui_transformer.model.config import AttentionConfig, Config, example_weight
from tui_transformer.model.local_models import find_model, named_alike, nowhere
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.tensors import Tensor, Tensors
from tui_transformer.model.word_vectors import NORMAL, NewEmbedding, WordVectors, read_vectors
from tui_transformer.records import dataclass
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.vocabulary import Vocabulary

BUILT_IN = ("encoder", "decoder", "encoder-decoder", "attention")
HEADS = 8
SMALL = 1_000_000
"""Weights of a model that is computed before a GPU would have been started."""

UNKNOWN: Mapping[str, str] = {
    "token": "the row of the table that the vocabulary has for them, [UNK]",
    "zero": "the vector 0",
    "error": "a mistake: the text is refused",
}
"""What unknown words are."""

Words = str | Path | Vocabulary | None
"""A built-in vocabulary's name, a file or a vocabulary; None for the model's own."""

At = tuple[str, str]
"""Where a model is computed, "auto", "cpu" or "gpu", and in what precision."""


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
        unknown: What a word that the vocabulary does not have is read as: a key of `UNKNOWN`.
        own_length: How many tokens a text may have as the folder has it, where another number was asked for.
    """

    name: str
    config: BaseConfig
    weights: Weights
    tokenizer: Tokenizer | None
    seed: int | None = None
    folder: Path | None = None
    embedding: NewEmbedding | None = None
    unread: tuple[str, ...] = ()
    own_length: int | None = None
    unknown: str = "token"

    @property
    def family(self) -> type[BaseConfig]:
        """What its configuration is one of."""
        return type(self.config)


class New(NamedTuple):
    """How the weights of a built-in model begin; None for the default.

    Attributes:
        embedding: How the table of words begins: "normal", "uniform" or "zeros".
        vectors: A file of word vectors, or those of a file.
    """

    seed: int | None = None
    embedding: str | None = None
    vectors: str | Path | WordVectors | None = None


class Added(Protocol):
    """Steps that a model has beside its own, and their weights."""

    def extended(self, program: Program) -> Program:
        """A program of the model with them; as it is where it does not compute what they read."""

    def check(self, program: Program) -> None:
        """Raise InputError where a program of the model without them has no place for them."""

    def beside(self, weights: Weights) -> Weights:
        """The weights of the model with theirs."""


class Dictionary(Protocol):
    """What gives such steps at a place in a model: a dictionary of features."""

    def placed(self, program: Program, at: str | None, into: str | None, *, replaces: bool) -> Added:
        """The steps at a place: see `Model.with_features`."""


def load(where: str | Path, words: Words, at: At, new: New, sizes: Mapping[str, Any]) -> Parts:
    """The parts of a built-in model or a checkpoint, whose weights say how they are opened or made again.

    Raises:
        InputError: What was given cannot be used.
    """
    given = [*sizes, *(name for name, value in new._asdict().items() if value is not None)]
    place = where
    if (built_in := built_in_name(where)) is not None:
        parts = _built_in(built_in, words, at, new, sizes)
    elif given and given != ["max_length"]:
        raise _not_settable(given, where)
    else:
        parts = _from_folder(where, words, at)
        if given:
            parts = _as_long_as(parts, sizes["max_length"])
        if parts.folder is not None and is_there(expanded(where)):
            place = parts.folder.resolve()
    again = functools.partial(load, place, words, at, new, sizes)
    return dataclasses.replace(parts, weights=dataclasses.replace(parts.weights, again=again))


def _not_settable(given: Iterable[str], where: str | Path) -> UsageError:
    return UsageError(f"{', '.join(given)}: the sizes and weights of {where} are in its folder and cannot be set")


def _as_long_as(parts: Parts, most: Any) -> Parts:
    """A model of sentence vectors for texts of other lengths than its folder says, as its library sets them."""
    config, head = parts.config, parts.config.sentence
    if head is None:
        raise _not_settable(["max_length"], parts.name)
    size_up_to(LARGEST_SIZE)("max_length", most)
    if most > config.longest:
        raise UsageError(f"max_length {most}: {parts.name} has positions for {config.longest} tokens and no more")
    longer = dataclasses.replace(config, sentence=dataclasses.replace(head, most_tokens=most))
    return dataclasses.replace(parts, config=longer, own_length=head.most_tokens or config.longest)


def built_in_name(where: str | Path) -> str | None:
    """The built-in model that a name means; None for a checkpoint."""
    return named_alike(where, BUILT_IN) if isinstance(where, str) else None


@functools.lru_cache(maxsize=32)
def program_of(config: BaseConfig, lengths: Lengths, silent: tuple[tuple[str, int | None], ...] = ()) -> Program:
    """The program of a configuration, where `silent` says which ID of which embeddings is the vector 0.

    Those that were asked for last are kept.
    """
    program, unknown = config.program(lengths), dict(silent)
    if not unknown:
        return program
    steps = (
        dataclasses.replace(step, op=dataclasses.replace(step.op, silent=unknown[step.name]))
        if step.name in unknown and isinstance(step.op, Embed)
        else step
        for step in program.steps
    )
    return Program(tuple(steps), program.aliases, program.weights, program.givens)


def check_settings_say_all(config: BaseConfig) -> None:
    """Raise InputError unless the `config.json` of a configuration gives the same steps and weights again."""
    program = config.program(Lengths(1, 1))
    nowhere: Any = None
    tensors = {name: Tensor(nowhere, "F32", shape_of(axes), 0, 0) for name, axes in program.weights.items()}
    try:
        settings = checkpoint.config_of(Path(checkpoint.CONFIG), config.to_json())
        settings, _ = fit(settings, Tensors(Path(checkpoint.CONFIG), tensors))
        other = settings.program(Lengths(1, 1))
    except InputError as error:
        raise InputError(f"a model of {config.model_type} that no config.json can say: {error}") from error
    if (other.steps, dict(other.weights)) != (program.steps, dict(program.weights)):
        what = f"a model of {config.model_type}, of which config.json does not say all"
        raise InputError(f"{what}: write its weights alone, --out model.npz")


def _built_in(name: str, words: Words, at: At, new: New, sizes: Mapping[str, Any]) -> Parts:
    seed = 0 if new.seed is None else new.seed
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed {shown(seed)} is not a whole number from 0")
    if name == "attention":
        if new.embedding is not None or new.vectors is not None:
            raise UsageError("the attention example reads no words: it has no embedding")
        _check_settings(sizes, AttentionConfig)
        example, given = AttentionConfig(**sizes), AttentionConfig()
        if (example.length, example.width) != (given.length, given.width):
            raise UsageError(f"Q, K and V of the attention example are given: {given.length} rows of {given.width}")
        return Parts(name, example, Weights(choose_backend(*at, small=True), example_weight), None)
    _check_settings(sizes, Config)
    if "decoder_layers" in sizes and name != "encoder-decoder":
        raise UsageError(f"decoder_layers is a setting of the encoder-decoder: set layers of the {name}")
    if name == "decoder" and sizes.get("causal") is False:
        raise UsageError("causal cannot be off in a decoder, which always has the causal mask: use the encoder")
    known = words if isinstance(words, Vocabulary) else load_vocabulary(words or "waves")
    start = {"start_id": known.ids.get("[BOS]", 0)} if name == "encoder-decoder" else {}
    sides: dict[str, Any] = {"architecture": name, "vocab_size": known.size, "pad_id": known.pad_id, **start}
    vectors = new.vectors if isinstance(new.vectors, WordVectors | None) else read_vectors(expanded(new.vectors), known)
    embedding = NewEmbedding(new.embedding or NORMAL, vectors)
    config = Config(**sides | fitting(vectors, sizes) | dict(sizes))
    count = program_of(config, Lengths(1, 1)).weight_count()
    backend = choose_backend(*at, small=count < SMALL)
    check_memory(count * backend.dtype.itemsize, f"{count:,} weights need", "choose smaller sizes")
    weights = Weights(backend, embedding.over(random_weights(seed), seed))
    return Parts(name, config, weights, tokenizer_for(known), seed, embedding=embedding)


def fitting(vectors: WordVectors | None, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes that vectors ask for: their width, and as many heads as divide it."""
    if vectors is None:
        return {}
    if sizes.get("d_model", vectors.width) != vectors.width:
        raise UsageError(f"d_model {sizes['d_model']}: the vectors of {vectors.path} have {vectors.width} numbers")
    heads = next(count for count in range(HEADS, 0, -1) if vectors.width % count == 0)
    return {"d_model": vectors.width, "heads": heads}


def _from_folder(where: str | Path, words: Words, at: At) -> Parts:
    local = find_model(where)
    if local is None:
        raise nowhere(where)
    config = checkpoint.read_config(local.folder)
    config, tensors = fit(config, checkpoint.open_tensors(local.folder))
    program = program_of(config, Lengths(1, 1))
    stored = checkpoint.stored_weights(tensors, config, program)
    known = words or checkpoint.own_vocabulary(local.folder)
    if known is not None and not isinstance(known, Vocabulary):
        known = load_vocabulary(known)
    tokenizer = None if known is None else tokenizer_for(known)
    if tokenizer is not None:
        read = tokenizer.vocabulary
        for words_of, rows in ((read, config.vocab_size), (read.written, config.target_vocab_size)):
            if words_of.rows > rows:
                raise InputError(
                    f"vocabulary {words_of.name} has {words_of.rows} words, the model {rows} embedding rows"
                )
    backend = choose_backend(*at, small=program.weight_count() < SMALL)
    weights, left = Weights(backend, stored.whole, file=stored, packed=stored.packed), stored.unread(config)
    return Parts(local.name, config, weights, tokenizer, folder=local.folder, unread=left)


def _check_settings(sizes: Iterable[str], config: type[BaseConfig]) -> None:
    known = [field.name for field in config.settings()]
    for key in sizes:
        if key not in known:
            raise UsageError(f"{key} is not a setting of this model: {', '.join(known)} are")
