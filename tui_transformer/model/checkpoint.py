"""Checkpoint folders: `config.json`, `model.safetensors`, and a vocabulary or tokenizer. Nothing is unpickled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape, shape_of, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Working
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, read_json, write_whole
from tui_transformer.gguf_file import read_gguf
from tui_transformer.model.base_config import BaseConfig
from tui_transformer.model.checks import shown
from tui_transformer.model.families import ALIASES, FAMILIES, family_of
from tui_transformer.model.labels import fitted_labels, table_of
from tui_transformer.model.other_files import WEIGHTS, check_architecture, open_plain, refuse_folder
from tui_transformer.model.packed import formats_of, with_weights
from tui_transformer.model.sentence import KEY, MOST_TOKENS, sentence_modules
from tui_transformer.model.tensors import Tensor, Tensors, open_file, open_index, without_wrapper
from tui_transformer.model.weight_table import Stored, WeightTable, as_it_is
from tui_transformer.records import dataclass, replace
from tui_transformer.text.vocabulary import VOCABULARY_FILE, Vocabulary

CONFIG = "config.json"
INDEX = f"{WEIGHTS}.index.json"
TOKENIZERS = ("tokenizer.json", VOCABULARY_FILE, "vocab.txt")
"""Vocabularies in the order of search; then `vocab.json` with `merges.txt`, then SentencePiece models."""

SENTENCE_PIECES = ("source.spm", "spiece.model", "tokenizer.model")
OF_A_TOKENIZER = (
    *(*TOKENIZERS, "vocab.json", "merges.txt", *SENTENCE_PIECES, "target.spm", "target_vocab.json"),
    *("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json"),
)
"""Every file that has a say in how text is split."""

NAMED = (
    *("vanilla", "attention", "bert", "distilbert", "roberta", "xlm-roberta", "electra", "albert", "mpnet"),
    *("modernbert", "deberta-v2", "bart", "marian", "mbart", "m2m_100", "pegasus"),
)
"""The families that a message names where a file is of another: not all of them, to be read at a glance."""

LARGEST_CONFIG = 1 << 20


def open_tensors(folder: Path) -> Tensors:
    """Open the weights of a checkpoint folder: one file, those that an index names, or plain files, as numbers.

    Raises:
        InputError: They are missing, damaged, or pickled.
    """
    if (gguf := gguf_in(folder)) is not None:
        from tui_transformer.model.gguf.model import open_model

        return open_model(read_gguf(gguf))
    modules = sentence_modules(folder)
    folder = folder if modules is None else modules.folder
    if (folder / WEIGHTS).exists():
        tensors = open_file(folder / WEIGHTS)
    elif (folder / INDEX).exists():
        tensors = open_index(folder / INDEX)
    elif (plain := open_plain(folder)) is not None:
        tensors = plain
    else:
        refuse_folder(folder)
        if part := next(folder.glob("*-of-*.safetensors"), None):
            raise InputError(f"{folder / INDEX}: no such file: copy it, too; it says what {part.name} and others hold")
        tensors = open_file(folder / WEIGHTS)
    path = folder / CONFIG
    try:
        formats = formats_of(read_json(path, LARGEST_CONFIG)) if is_file(path) else ()
    except UsageError as error:
        raise InputError(f"{path}: {error}") from error
    tensors = with_weights(without_wrapper(tensors), formats)
    return tensors if modules is None else modules.added_to(tensors)


@dataclass(frozen=True, eq=False)
class StoredWeights:
    """The weights of a program in a file.

    Attributes:
        places: For each weight, the tensor that has it, and how it is taken of that.
    """

    tensors: Tensors
    places: Mapping[str, Stored]

    def whole(self, name: str, _: Shape) -> Host:
        """A weight, as floats."""
        return self.part(name, ...)

    def part(self, name: str, index: Any) -> Host:
        """The cells of a weight at an index of slices, or rows by ascending numbers, as floats; no others are read."""
        place = self.places[name]
        if place.make is not as_it_is:
            return place.numbers(place.make(self.tensors.read(place.name, place.take))[index])
        if isinstance(index, np.ndarray):
            return place.numbers(self.tensors.read(place.name, place.take, rows=index))
        return place.numbers(self.tensors.read(place.name, lambda tensor: place.take(tensor)[index]))

    def packed(self, name: str) -> bool:
        """Whether a weight is a matrix that is made of blocks of few bits wherever it is read, some columns at once."""
        place = self.places[name]
        as_stored = place.make is as_it_is and not place.plus
        return as_stored and self.tensors.find(place.name).packed(place.take)

    def unread(self, config: BaseConfig) -> tuple[str, ...]:
        """The tensors that no weight is read from, but for known buffers and copies of what is read; sorted."""
        held, names, table = self.tensors.by_name, self.tensors.names, _table(self.tensors, config)
        read = {place.name for place in self.places.values()}
        left, known = names - read, set(read)
        for name, place in self.places.items():
            copies = left.intersection(table.spellings(name, names))
            known |= {other for other in copies if equal(held[other], held[place.name])}
        buffers = re.compile(rf"(^|.*\.)({'|'.join((*HARMLESS, *(() if config.sentence is None else POOLER)))})")
        return tuple(sorted(name for name in held.keys() - known if not buffers.fullmatch(name)))

    def explain(self, name: str, index: tuple[int, ...]) -> tuple[str, Working] | None:
        """How a cell of a weight was rounded: its block in the file; None where it is stored as a float."""
        place = self.places[name]
        if place.plus:
            return None
        cell = tuple(slice(i, i + 1) for i in index)
        tensor = self.tensors.find(place.name)
        rounded = tensor.rounded(f"tensor {place.name}", lambda stored: place.make(place.take(stored))[cell])
        return None if rounded is None else rounded.explained()


def stored_weights(tensors: Tensors, config: BaseConfig, program: Program) -> StoredWeights:
    """The weights of a program in a file.

    Raises:
        InputError: The file lacks a weight, or has one in another shape or type; at once, before anything is read.
    """
    names, table = tensors.names, _table(tensors, config)
    places = {}
    for name, axes in program.weights.items():  # as this program saves it, or where the family has it
        places[name] = Stored(name) if name in names else table.stored(config, name, names)
        _check_shape(tensors, places[name], shape_of(axes))
    left = sorted(tensors.names - {place.name for place in places.values()})
    if left and tensors.settings == "metadata":  # llama.cpp would compute something else with it
        more = f" and {len(left) - 1} more are" if len(left) > 1 else " is"
        raise InputError(f"{tensors.path}: tensor {left[0][:80]}{more} not read here: what it changes is not computed")
    return StoredWeights(tensors, places)


def _table(tensors: Tensors, config: BaseConfig) -> WeightTable:
    table = table_of(config.weights, config)
    return replace(table, parts={**table.parts, **tensors.parts})


def _check_shape(tensors: Tensors, place: Stored, shape: Shape) -> None:
    """Raise InputError unless a tensor gives a weight of this shape."""
    tensor = tensors.find(place.name)
    try:
        given = place.make(place.take(np.broadcast_to(np.uint8(0), tensor.shape))).shape
    except (ValueError, IndexError):
        given = ()
    if given != shape:
        made = "" if place.take is as_it_is else f", which gives {shape_text(given)}" if given else ""
        wrong = f"tensor {place.name} is {shape_text(tensor.shape)}{made}"
        says = "its metadata say" if tensors.settings == "metadata" else f"{tensors.settings} says"
        raise InputError(f"{tensor.path}: {wrong}, but {says} {shape_text(shape)}")


def read_config(folder: Path) -> BaseConfig:
    """The configuration of a checkpoint folder.

    Raises:
        InputError: No folder, no config, not JSON, or a configuration that cannot be.
    """
    if (gguf := gguf_in(folder)) is not None:
        from tui_transformer.model.gguf.model import settings_of

        return config_of(gguf, settings_of(read_gguf(gguf)))
    modules = sentence_modules(folder)
    path = (folder if modules is None else modules.folder) / CONFIG
    if folder.is_dir() and not path.exists():
        refuse_folder(folder)
    raw = read_json(path, LARGEST_CONFIG)
    said = {} if modules is None else {KEY: modules.settings, MOST_TOKENS: modules.most_tokens}
    return config_of(path, {**raw, **said})


def config_of(path: Path, raw: Mapping[str, Any]) -> BaseConfig:
    """The configuration that a `config.json` describes; `path` is named where it cannot be.

    Raises:
        InputError: A family or a setting that is not computed.
    """
    kind = raw.get("model_type")
    if not isinstance(kind, str) or kind not in (*FAMILIES, *ALIASES):
        others = len(FAMILIES) + len(ALIASES) - len(NAMED)
        raise InputError(f"{path}: model_type {shown(kind)} is not supported: {', '.join(NAMED)} and {others} more are")
    if kind == "mistral" and raw.get("layer_types") is not None:
        kind = "ministral"
    try:
        formats_of(raw)
        config = family_of(kind).from_json({key: value for key, value in raw.items() if key != "quantization_config"})
        if config.labels is None and KEY not in raw:
            check_architecture(raw)
    except UsageError as error:
        raise InputError(f"{path}: {error}") from error
    return config


def gguf_in(where: Path) -> Path | None:
    """The GGUF file that a checkpoint is: the file itself, or the only one of a folder without other weights.

    Raises:
        InputError: The folder has several.
    """
    if is_file(where):
        return where
    if is_file(where / WEIGHTS) or is_file(where / INDEX):
        return None
    files = sorted(where.glob("*.gguf"))
    if len(files) > 1:
        raise InputError(f"{where}: {len(files)} GGUF files: name one of them, such as {files[0].name}")
    return files[0] if files else None


def own_vocabulary(folder: Path) -> Path | None:
    """The file of a checkpoint folder that its text is split by, where there is one."""
    if (gguf := gguf_in(folder)) is not None:
        from tui_transformer.text.gguf_vocabulary import has_vocabulary

        return gguf if has_vocabulary(read_gguf(gguf)) else None
    modules = sentence_modules(folder)
    folder = folder if modules is None else modules.folder
    pair = [folder / "vocab.json"] if (folder / "merges.txt").exists() else []
    places = (*(folder / name for name in TOKENIZERS), *pair, *(folder / name for name in SENTENCE_PIECES))
    return next((path for path in places if path.exists()), None)


def save(folder: Path, config: BaseConfig, weights: Mapping[str, Host], vocabulary: Vocabulary | None = None) -> None:
    """Write a checkpoint folder; each file appears whole or not at all.

    Raises:
        InputError: The folder cannot be written.
    """
    from safetensors.numpy import save as encode

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
    write_whole(folder / WEIGHTS, encode({name: np.ascontiguousarray(array) for name, array in weights.items()}))
    save_settings(folder, config, vocabulary)


def save_settings(folder: Path, config: BaseConfig, vocabulary: Vocabulary | None) -> None:
    """Write what stands beside the weights: the vocabulary's files, and last `config.json`.

    Files of another tokenizer are removed: they would be read instead.
    """
    files = {} if vocabulary is None else vocabulary.files()
    for name, data in files.items():
        write_whole(folder / name, data)
    for name in () if vocabulary is None else OF_A_TOKENIZER:
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    write_whole(folder / CONFIG, (json.dumps(config.to_json(), indent=2) + "\n").encode())


BLOCK = 1 << 24
"""Bytes that are compared together."""


def fit(config: BaseConfig, tensors: Tensors) -> tuple[BaseConfig, Tensors]:
    """The configuration with what only the file tells, and the tensors without those that are copies of others.

    Only where a file has a tensor and its copy, both are read, to see whether they are equal.

    Raises:
        InputError: Tensors that the family has only once differ.
    """
    if config.wrapped and config.labels is not None:
        unwrapped = {name.removeprefix(config.wrapped): tensor for name, tensor in tensors.by_name.items()}
        tensors = replace(tensors, by_name=unwrapped) if len(unwrapped) == len(tensors.by_name) else tensors
    held = tensors.by_name
    copies = {
        copy
        for copy, name in config.copies(tensors.names).items()
        if copy != name and copy in held and name in held and equal(held[copy], held[name])
    }
    tensors = replace(
        tensors,
        by_name={name: tensor for name, tensor in held.items() if name not in copies},
        promised={name: file for name, file in tensors.promised.items() if name not in copies},
    )
    names = frozenset((*tensors.names, *tensors.promised))
    try:
        config = config.fitted(names)
        if config.labels is None:
            return config, tensors
        labels = fitted_labels(config.labels, table_of(config.weights, config), names)
        return replace(config, labels=labels), tensors
    except UsageError as error:
        raise InputError(f"{tensors.path}: {error}") from error


def equal(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors hold the same bytes, as numbers of the same type and in the same shape."""
    if (first.kind, first.shape, first.turned) != (second.kind, second.shape, second.turned):
        return False
    places = range(0, first.stop - first.start, BLOCK)
    return all(_block(first, place) == _block(second, place) for place in places)


def _block(tensor: Tensor, place: int) -> bytes:
    start = tensor.start + place
    return tensor.file.bytes(start, min(BLOCK, tensor.stop - start))


HARMLESS: tuple[str, ...] = (
    r"position_ids",  # 0, 1, 2 …, as BERT's embeddings hold them
    r"token_type_ids",
    r"(attn|attention)\.(attention\.)?(bias|masked_bias)",  # the causal mask of GPT-2, GPT-Neo and GPT-NeoX
    r"rotary_emb\.(inv_freq|cos_cached|sin_cached)",
    r"rotary_pos_emb\.inv_freq",
    r"embed_positions\.(weights|_float_tensor)",  # sines that are computed
    r"(encoder|decoder)\.version",
    r"EncDecAttention\.relative_attention_bias\.weight",  # of old T5 files; the published code drops it too
)
"""Ends of the names of buffers, which hold no learned number and are computed here, and of weights that do nothing."""

POOLER: tuple[str, ...] = (r"pooler\.(dense\.)?(weight|bias)",)
"""Of an encoder's own way to one vector, which a folder of sentence-transformers leaves for another."""
