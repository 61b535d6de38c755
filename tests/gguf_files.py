"""GGUF files of the reference checkpoints, written with the library `gguf` as llama.cpp's converter does.

Names are those of the library's own map; what the converter does to tensors is done here once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import MODEL_ARCH, MODEL_ARCH_NAMES, GGMLQuantizationType, GGUFWriter, TokenType, get_tensor_name_map
from gguf.quants import quantize
from reference import REFERENCES
from safetensors.numpy import load_file

ARCHITECTURES = {
    "mixtral": "llama",
    "mistral-window": "llama",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "olmo3": "olmo2",
    "gpt_oss": "gpt-oss",
    "phi": "phi2",
    "cohere": "command-r",
    "gpt_neox": "gptneox",
    "roberta": "bert",
    "xlm-roberta": "bert",
    "modernbert": "modern-bert",
    "nomic_bert": "nomic-bert",
    "gpt_bigcode": "starcoder",
}
"""Families → what llama.cpp calls them, where it is something else."""

ENTRIES: Mapping[str, tuple[str, ...]] = {
    "embedding_length": ("hidden_size", "n_embd", "d_model"),
    "feed_forward_length": ("ffn_hidden_size", "intermediate_size", "n_inner", "d_ff"),
    "block_count": ("num_hidden_layers", "n_layer", "num_layers"),
    "attention.head_count": ("num_attention_heads", "n_head", "num_heads"),
    "attention.head_count_kv": ("num_kv_heads", "num_key_value_heads"),
    "attention.key_length": ("head_dim", "d_kv"),
    "attention.relative_buckets_count": ("relative_attention_num_buckets",),
    "decoder_block_count": ("num_decoder_layers",),
    "decoder_start_token_id": ("decoder_start_token_id",),
    "context_length": ("max_position_embeddings", "n_positions"),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"),
    "attention.sliding_window": ("sliding_window", "local_attention"),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "expert_count": ("num_local_experts", "num_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
    "attention.scale": ("attention_multiplier",),
    "embedding_scale": ("embedding_multiplier",),
    "residual_scale": ("residual_multiplier",),
    "logit_scale": ("logits_scaling", "logit_scale"),
    "use_parallel_residual": ("use_parallel_residual",),
    "hidden_activation": ("hidden_activation",),
}
Config = dict[str, Any]
Tensors = Iterator[tuple[str, np.ndarray]]


def write_gguf(
    path: Path,
    family: str | Path,
    kind: str = "F32",
    tensors: Mapping[str, list[float]] | None = None,
    left: tuple[str, ...] = (),
    **changes: Any,
) -> Path:
    """The checkpoint of a family, or of a folder, as a GGUF file, its matrices in a type.

    With further tensors and entries, and without the entries that are left out.
    """
    folder = REFERENCES / family
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES.get(folder.name, config["model_type"].removesuffix("_text"))
    architecture = ARCHITECTURES.get(config["model_type"], architecture)
    writer = GGUFWriter(path, architecture)
    for entry, value in (entries_of(architecture, config) | changes).items():
        if entry in left:
            continue
        add_entry(writer, f"{architecture}.{entry.replace('__', '.')}", value)
    add_vocabulary(writer, folder)
    for name, tensor in tensors_of(architecture, config, load_file(folder / "model.safetensors")):
        add_tensor(writer, name, tensor.astype(np.float32), kind)
    for name, numbers in (tensors or {}).items():
        writer.add_tensor(name, np.array(numbers, np.float32))
    finish(writer)
    return path


def finish(writer: GGUFWriter) -> None:
    """Write the file of what was added."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_entry(writer: GGUFWriter, key: str, value: Any) -> None:
    """An entry of the metadata."""
    kinds = ((bool, "bool"), (int, "uint32"), (float, "float32"), (str, "string"), (list, "array"))
    kind = next(name for each, name in kinds if isinstance(value, each))
    getattr(writer, f"add_{kind}")(key, value)


def entries_of(architecture: str, config: Config) -> Config:
    """The entries that the converter writes of the settings."""
    entries = {
        entry: next((config[key] for key in keys if config.get(key) is not None), None)
        for entry, keys in ENTRIES.items()
    }
    entries |= positions_of(config)
    if architecture == "bert":
        entries["context_length"] -= 2 if config["model_type"] != "bert" else 0
    if architecture in ("bloom", "falcon"):
        entries |= {"feed_forward_length": 4 * config["hidden_size"], "context_length": 2048}
    if architecture == "falcon" and not config.get("new_decoder_architecture"):
        entries["attention.head_count_kv"] = 1
    if architecture == "modern-bert":
        entries["attention.sliding_window_pattern"] = config["global_attn_every_n_layers"]
        entries["attention.layer_norm_epsilon"] = config["norm_eps"]
    elif "layer_types" in config and entries["attention.sliding_window"]:
        entries["attention.sliding_window_pattern"] = [kind == "sliding_attention" for kind in config["layer_types"]]
    if architecture in ("t5", "t5encoder"):
        entries |= {"context_length": 512, "attention.layer_norm_rms_epsilon": config["layer_norm_epsilon"]}
    if architecture == "gpt-oss":
        entries["expert_feed_forward_length"] = config["intermediate_size"]
    return {key: value for key, value in entries.items() if value is not None}


def positions_of(config: Config) -> Config:
    """The entries that the converter writes of rotary positions."""
    rope = config.get("rope_parameters") or {}
    full, local = rope.get("full_attention", rope), rope.get("sliding_attention", {})
    if not full:
        return {}
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    entries = {
        "rope.freq_base": full["rope_theta"],
        "rope.freq_base_swa": local.get("rope_theta"),
        "rope.dimension_count": int(width * full.get("partial_rotary_factor", 1.0)),
    }
    if full["rope_type"] in ("linear", "yarn"):
        entries |= {"rope.scaling.type": full["rope_type"], "rope.scaling.factor": full["factor"]}
    if full["rope_type"] == "yarn":
        entries["rope.scaling.original_context_length"] = full["original_max_position_embeddings"]
        entries |= {f"rope.scaling.yarn_{key}": full.get(key) for key in ("beta_fast", "beta_slow")}
    return entries


# What the converter does to tensors


def in_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """`permute`: the two halves of a head's rows in turn."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def tensors_of(architecture: str, config: Config, tensors: Mapping[str, np.ndarray]) -> Tensors:
    """The tensors under llama.cpp's names, ordered and scaled as there."""
    number = next(number for number, name in MODEL_ARCH_NAMES.items() if name == architecture)
    layers = config.get("num_hidden_layers") or config.get("n_layer") or config["num_layers"]
    names = get_tensor_name_map(MODEL_ARCH(number), layers)
    for name, tensor in CHANGES.get(architecture, lambda _, same: same)(config, stacked(dict(tensors))).items():
        short = re.sub(r"^(bert|nomic_bert|roberta|transformer)\.", "", name)
        if architecture == "modern-bert":
            short = short.removeprefix("model.")
        own = next(
            (
                names.get_name(each, try_suffixes=(".weight", ".bias"))
                for each in (name, short)
                if names.get_name(each, try_suffixes=(".weight", ".bias"))
            ),
            None,
        )
        tied = config.get("tie_word_embeddings") and own == "output.weight"
        if own is not None and not tied and not own.startswith("cls"):
            yield own, np.ascontiguousarray(tensor)


def stacked(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices of experts together, and γ of heads that have their own."""
    numbered: dict[str, dict[int, np.ndarray]] = {}
    for name in list(tensors):
        if (match := re.fullmatch(r"(.*\.(?:experts|norms))\.(\d+)(.*)", name)) is not None:
            before, which, behind = match.groups()
            whole = before.removesuffix(".norms") + behind
            numbered.setdefault(whole, {})[int(which)] = tensors.pop(name)
    mixtral = {".w1.": ".gate_proj.", ".w2.": ".down_proj.", ".w3.": ".up_proj."}
    for whole, parts in numbered.items():
        for old, new in mixtral.items():
            whole = whole.replace(f"block_sparse_moe.experts{old}", f"mlp.experts{new}")
        tensors[whole] = np.stack([parts[i] for i in sorted(parts)])
    return tensors


def _llama(config: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, tensor in tensors.items():
        for part, count in heads.items():
            if f".{part}." in name:
                tensors[name] = in_pairs(tensor, count)
    return tensors


def _gemma(_: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: tensor + 1 if name.endswith("norm.weight") else tensor for name, tensor in tensors.items()}


def _gpt2(_: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: tensor.T if ".h." in name and tensor.ndim == 2 else tensor for name, tensor in tensors.items()}


def _fused(config: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of BLOOM and GPT-NeoX: all queries, all keys, all values."""
    heads = config.get("n_head") or config["num_attention_heads"]
    for name, tensor in tensors.items():
        if "query_key_value" in name:
            parts = tensor.reshape(heads, 3, -1, *tensor.shape[1:])
            tensors[name] = np.concatenate([parts[:, i].reshape(-1, *tensor.shape[1:]) for i in range(3)])
    return tensors


def _falcon(config: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    heads, keys = config["num_attention_heads"], config["num_kv_heads"] if config.get("new_decoder_architecture") else 1
    width = config["hidden_size"] // heads
    for name, tensor in tensors.items():
        if "query_key_value" in name:
            groups = tensor.reshape(keys, heads // keys + 2, width, -1)
            parts = (groups[:, :-2], groups[:, [-2]], groups[:, [-1]])
            tensors[name] = np.concatenate([part.reshape(-1, tensor.shape[1]) for part in parts])
    return tensors


def _gpt_oss(_: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    renamed = {}
    for name, tensor in tensors.items():
        start = name.rpartition(".")[0]
        if name.endswith("gate_up_proj"):
            turned = tensor.swapaxes(1, 2)
            renamed |= {f"{start}.gate_proj.weight": turned[:, ::2], f"{start}.up_proj.weight": turned[:, 1::2]}
        elif name.endswith("gate_up_proj_bias"):
            renamed |= {f"{start}.gate_proj.bias": tensor[:, ::2], f"{start}.up_proj.bias": tensor[:, 1::2]}
        elif name.endswith("down_proj"):
            renamed[f"{name}.weight"] = tensor.swapaxes(1, 2)
        elif name.endswith("down_proj_bias"):
            renamed[name.replace("_bias", ".bias")] = tensor
        else:
            renamed[f"{name}.weight" if name.endswith("sinks") else name] = tensor
    return renamed


def _bert(config: Config, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first rows of RoBERTa's positions are those of padding."""
    for name, tensor in tensors.items():
        if "position_embeddings" in name and config["model_type"] != "bert":
            tensors[name] = tensor[config["pad_token_id"] + 1 :]
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(("cls", "lm_head"))}


CHANGES: Mapping[str, Callable[[Config, dict[str, np.ndarray]], dict[str, np.ndarray]]] = {
    **dict.fromkeys(("llama", "granite", "smollm3", "arcee"), _llama),
    **dict.fromkeys(("gemma", "gemma2", "gemma3", "nemotron"), _gemma),
    **dict.fromkeys(("bloom", "gptneox"), _fused),
    "gpt2": _gpt2,
    "falcon": _falcon,
    "gpt-oss": _gpt_oss,
    "bert": _bert,
}


def add_tensor(writer: GGUFWriter, name: str, tensor: np.ndarray, kind: str) -> None:
    """A tensor, in a type where it is a matrix of a layer."""
    if kind != "F32" and tensor.ndim >= 2 and tensor.shape[-1] % 32 == 0 and "embd" not in name:
        typed = GGMLQuantizationType[kind]
        writer.add_tensor(name, quantize(tensor, typed), raw_dtype=typed)
    else:
        writer.add_tensor(name, tensor)


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
