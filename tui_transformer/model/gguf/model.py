"""A model in a GGUF file: what its `config.json` would say, and its tensors where the family looks for them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.checks import LARGEST_SIZE, shown
from tui_transformer.model.gguf.architectures import NUMBER, Architecture, architecture_of
from tui_transformer.model.gguf.names import Settings, Several
from tui_transformer.model.gguf.settings import READ_HERE
from tui_transformer.model.gguf.tensors import GgufTensors, Make, Placed, check_places, open_gguf
from tui_transformer.model.weight_table import TABLES

SHARED_KEYS: Mapping[str, str] = {
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_eps",
}
"""Entries of the metadata, behind the name of the architecture → keys of `config.json`."""

NEEDED = ("embedding_length", "block_count", "attention.head_count", "context_length")
SIZES = ("attention.key_length", "attention.head_count_kv")
WINDOW = "sliding_window"
OWN_STEPS = ("decoder.", "encoder.")
"""Beginnings of names of the program's own steps, whose matrices are stored in × out."""

SINKS = ".attn_sinks"
NOT_READ = ("cls.", "cls_", "v.", "mm.", "dec.blk.0.cross_attn_rel_b")
"""Beginnings of tensors of a head that gives classes, of what sees pictures (the model of words is read alone), and of
one of old T5 files, which does nothing."""


def settings_of(file: GgufFile) -> dict[str, Any]:
    """The settings as a `config.json` would have them.

    Raises:
        InputError: The architecture is not known, or a setting of it is not read.
    """
    architecture, name = architecture_of(file), file.architecture
    raw: dict[str, Any] = {"model_type": architecture.model_type, **architecture.fixed}
    for entry, key in {**SHARED_KEYS, **architecture.keys}.items():
        value = file.metadata.get(f"{name}.{entry}")
        if value is not None:
            raw[key] = value.tolist() if isinstance(value, np.ndarray) else value
    wrong = next((entry for entry in (*NEEDED, *SIZES) if not _is_size(file, entry, needed=entry in NEEDED)), None)
    if wrong is not None:
        said = shown(file.metadata.get(f"{name}.{wrong}"))
        raise InputError(f"{file.path}: its metadata have {said} for {name}.{wrong}, which is no size: copy it again")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or not embedding.shape:
        raise InputError(f"{file.path}: no tensor token_embd.weight: it holds no model")
    if raw.get(WINDOW) == 0:  # how llama.cpp says that there is none
        raw[WINDOW] = None
    raw["vocab_size"] = embedding.shape[0]
    raw["tie_word_embeddings"] = "output.weight" not in file.tensors
    if "token_types.weight" in file.tensors:
        raw["type_vocab_size"] = file.tensors["token_types.weight"].shape[0]
    return {**raw, **_special(file, embedding.shape[0]), **architecture.more(file, raw)}


def _is_size(file: GgufFile, entry: str, *, needed: bool) -> bool:
    value = file.metadata.get(f"{file.architecture}.{entry}")
    return (value is None and not needed) or (isinstance(value, int) and 0 < value <= LARGEST_SIZE)


def _special(file: GgufFile, rows: int) -> dict[str, Any]:
    """The IDs of padding, of beginnings and ends, as the vocabulary has them; of padding none where it says none."""
    said = {key: file.metadata.get(f"tokenizer.ggml.{name}_token_id") for key, name in _IDS.items()}
    ids = {key: value for key, value in said.items() if isinstance(value, int) and 0 <= value < rows}
    known = "pad_token_id" in ids or file.architecture == "bert"
    return ids if known else {**ids, "pad_token_id": None}


_IDS = {"pad_token_id": "padding", "bos_token_id": "bos", "eos_token_id": "eos"}


def open_model(file: GgufFile) -> GgufTensors:
    """The tensors under the names that the family looks for.

    Raises:
        InputError: The architecture is not known, or a tensor is damaged or not in its place.
    """
    check_places(file)
    kept = {name: entry for name, entry in file.tensors.items() if _is_read(name)}
    place = functools.partial(_placed, architecture_of(file), settings_of(file))
    return open_gguf(GgufFile(file.path, file.metadata, kept, file.size), place)


def _is_read(name: str) -> bool:
    return name not in READ_HERE and not name.startswith(NOT_READ)


def _placed(architecture: Architecture, raw: Settings, name: str, shape: Shape) -> Iterable[Placed]:
    """Where a tensor goes; one that nothing is known of keeps its name."""
    if name.endswith(SINKS):  # as Ollama has it
        name = f"{name}.weight"
    stem, _, ending = name.rpartition(".")
    target, numbers = architecture.names.get(NUMBER.sub("{}", f"{stem}.").rstrip(".")), NUMBER.findall(f"{stem}.")
    make = next((make(raw) for end, make in architecture.made.items() if name.endswith(end)), None)
    if target is None:
        return (Placed(name),)
    if isinstance(target, str):
        own = f"{target.format(*numbers)}.{ending}"
        return (Placed(own, _turned(own, len(shape)) or make),)
    return _several(target, raw, numbers, ending, shape)


def _several(target: Several, raw: Settings, numbers: list[str], ending: str, shape: Shape) -> Iterable[Placed]:
    count = shape[0] if shape else 0
    if target.sizes is None:
        cells = [(i, each, name) for i in range(count) for each, name in enumerate(target.names)]
        places = [(i, each, f"{name.format(*numbers, i)}.{ending}") for i, each, name in cells]
        return [
            Placed(own, _in_turn(target, each, own, len(shape) - 1), (i, 1), whole=False) for i, each, own in places
        ]
    sizes = tuple(target.sizes(raw))
    if sum(sizes) != count:
        raise ValueError("not the sum of the sizes")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    named = [f"{name.format(*numbers)}.{ending}" for name in target.names]
    return [
        Placed(own, _turned(own, len(shape)), run)
        for own, run in zip(named, zip(starts, sizes, strict=True), strict=True)
    ]


def _in_turn(target: Several, first: int, own: str, axes: int) -> Make | None:
    """Of rows of several weights in turn, those of one; as the program has it."""
    turned, every = _turned(own, axes), len(target.names)
    if every == 1:
        return turned
    return lambda rows: np.ascontiguousarray(rows[first::every] if turned is None else turned(rows[first::every]))


def _turned(own: str, axes: int) -> Make | None:
    table = own.rpartition(".")[0].rpartition(".")[2] in TABLES
    return np.transpose if own.startswith(OWN_STEPS) and axes == 2 and not table else None
