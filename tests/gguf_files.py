"""GGUF files of the reference checkpoints, written by the library's own writer as llama.cpp's converter does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize
from reference import REFERENCES
from safetensors.numpy import load_file

from tui_transformer.model.gguf_architectures import ARCHITECTURES, NUMBER

ENTRIES = {
    "hidden_size": "embedding_length",
    "n_embd": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "n_layer": "block_count",
    "num_attention_heads": "attention.head_count",
    "n_head": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "n_positions": "context_length",
    "sliding_window": "attention.sliding_window",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_eps": "attention.layer_norm_epsilon",
    "layer_norm_epsilon": "attention.layer_norm_epsilon",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
SMALL_ENDINGS = ("_norm.weight", ".bias")


def in_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """`permute` of llama.cpp's converter: the two halves of a head's rows in turn."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def written_name(architecture: str, name: str) -> str | None:
    """What llama.cpp calls a tensor; None for one that it leaves out."""
    stem, _, ending = name.rpartition(".")
    prefix = {"gpt2": "transformer.", "bert": "bert."}.get(architecture, "model.")
    own = {there: here for here, there in ARCHITECTURES[architecture].names.items()}
    for spelling in (stem, prefix + stem):
        found = own.get(NUMBER.sub("{}", f"{spelling}.").removesuffix("."))
        if found is not None:
            return f"{found.format(*NUMBER.findall(spelling + '.'))}.{ending}"
    return None


def write_gguf(path: Path, family: str, kind: str = "F32", **changes: Any) -> Path:
    """The checkpoint of a family as a GGUF file, its matrices in a type."""
    folder = REFERENCES / family
    config = json.loads((folder / "config.json").read_text())
    writer = GGUFWriter(path, family)
    for key, entry in ENTRIES.items():
        value = config.get(key)
        if value is not None:
            add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
            add(f"{family}.{entry}", value)
    theta = (config.get("rope_parameters") or {}).get("rope_theta")
    if theta is not None:
        writer.add_float32(f"{family}.rope.freq_base", theta)
    add_vocabulary(writer, folder)
    for key, value in changes.items():
        writer.add_uint32(f"{family}.{key.replace('__', '.')}", value)
    for name, tensor in load_file(folder / "model.safetensors").items():
        add_tensor(writer, family, config, name, tensor, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_tensor(writer: GGUFWriter, family: str, config: Any, name: str, tensor: np.ndarray, kind: str) -> None:
    """One tensor, as the converter orders and scales it."""
    own = written_name(family, name)
    if own is None or (config.get("tie_word_embeddings") and own == "output.weight"):
        return
    tensor = tensor.astype(np.float32)
    if family == "llama" and ("attn_q." in own or "attn_k." in own):
        heads = config["num_attention_heads" if "attn_q." in own else "num_key_value_heads"]
        tensor = in_pairs(tensor, heads)
    if family.startswith("gemma") and own.endswith("norm.weight"):
        tensor = tensor + 1
    if family == "gpt2" and own.startswith("blk") and tensor.ndim == 2:
        tensor = tensor.T
    tensor = np.ascontiguousarray(tensor)
    if kind != "F32" and tensor.ndim == 2 and tensor.shape[-1] % 32 == 0 and "embd" not in own:
        typed = GGMLQuantizationType[kind]
        writer.add_tensor(own, quantize(tensor, typed), raw_dtype=typed)
    else:
        writer.add_tensor(own, tensor)


def add_vocabulary(writer: GGUFWriter, folder: Path) -> None:
    """The byte-level BPE of a `tokenizer.json`; none where it is of another kind."""
    path = folder / "tokenizer.json"
    raw = json.loads(path.read_text()) if path.exists() else {"model": {}}
    if raw["model"].get("type") != "BPE":
        return
    special = {each["content"]: each["id"] for each in raw["added_tokens"]}
    ids = raw["model"]["vocab"] | special
    words = sorted(ids, key=ids.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([TokenType.CONTROL if word in special else TokenType.NORMAL for word in words])
    merges = raw["model"]["merges"]
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
