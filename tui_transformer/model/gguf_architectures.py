"""Architectures of llama.cpp: which family they are, and what their metadata and tensors are called there."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.checks import shown
from tui_transformer.model.gguf_tensors import GgufTensors, Make, open_gguf

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
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
    "rope.freq_base": "rope_theta",
}
"""Entries of the metadata, behind the name of the architecture → keys of `config.json`."""

NEEDED = ("embedding_length", "block_count", "attention.head_count", "context_length")
LAYERS_OF_27B = 46
BLOCK, LAYER = "blk.{}", "model.layers.{}"
LLAMA_NAMES: Mapping[str, str] = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    f"{BLOCK}.attn_norm": f"{LAYER}.input_layernorm",
    f"{BLOCK}.attn_q": f"{LAYER}.self_attn.q_proj",
    f"{BLOCK}.attn_q_norm": f"{LAYER}.self_attn.q_norm",
    f"{BLOCK}.attn_k": f"{LAYER}.self_attn.k_proj",
    f"{BLOCK}.attn_k_norm": f"{LAYER}.self_attn.k_norm",
    f"{BLOCK}.attn_v": f"{LAYER}.self_attn.v_proj",
    f"{BLOCK}.attn_qkv": f"{LAYER}.self_attn.qkv_proj",
    f"{BLOCK}.attn_output": f"{LAYER}.self_attn.o_proj",
    f"{BLOCK}.ffn_norm": f"{LAYER}.post_attention_layernorm",
    f"{BLOCK}.ffn_gate": f"{LAYER}.mlp.gate_proj",
    f"{BLOCK}.ffn_up": f"{LAYER}.mlp.up_proj",
    f"{BLOCK}.ffn_down": f"{LAYER}.mlp.down_proj",
}
PHI3_NAMES = {**LLAMA_NAMES, f"{BLOCK}.ffn_up": f"{LAYER}.mlp.gate_up_proj"}
GEMMA2_NAMES = {
    **LLAMA_NAMES,
    f"{BLOCK}.post_attention_norm": f"{LAYER}.post_attention_layernorm",
    f"{BLOCK}.ffn_norm": f"{LAYER}.pre_feedforward_layernorm",
    f"{BLOCK}.post_ffw_norm": f"{LAYER}.post_feedforward_layernorm",
}
GPT2_NAMES: Mapping[str, str] = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    f"{BLOCK}.attn_norm": "transformer.h.{}.ln_1",
    f"{BLOCK}.attn_qkv": "transformer.h.{}.attn.c_attn",
    f"{BLOCK}.attn_output": "transformer.h.{}.attn.c_proj",
    f"{BLOCK}.ffn_norm": "transformer.h.{}.ln_2",
    f"{BLOCK}.ffn_up": "transformer.h.{}.mlp.c_fc",
    f"{BLOCK}.ffn_down": "transformer.h.{}.mlp.c_proj",
}
ENCODER = "bert.encoder.layer.{}"
BERT_NAMES: Mapping[str, str] = {
    "token_embd": "bert.embeddings.word_embeddings",
    "position_embd": "bert.embeddings.position_embeddings",
    "token_types": "bert.embeddings.token_type_embeddings",
    "token_embd_norm": "bert.embeddings.LayerNorm",
    f"{BLOCK}.attn_q": f"{ENCODER}.attention.self.query",
    f"{BLOCK}.attn_k": f"{ENCODER}.attention.self.key",
    f"{BLOCK}.attn_v": f"{ENCODER}.attention.self.value",
    f"{BLOCK}.attn_output": f"{ENCODER}.attention.output.dense",
    f"{BLOCK}.attn_output_norm": f"{ENCODER}.attention.output.LayerNorm",
    f"{BLOCK}.ffn_up": f"{ENCODER}.intermediate.dense",
    f"{BLOCK}.ffn_down": f"{ENCODER}.output.dense",
    f"{BLOCK}.layer_output_norm": f"{ENCODER}.output.LayerNorm",
}

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        model_type: The family that computes it.
        names: Tensors, without ending → those of the published checkpoint.
        keys: Further entries of the metadata → keys of `config.json`.
        fixed: Keys of `config.json` that the metadata do not have.
        made: How tensors differ from the published ones: ends of names → what makes them, given the settings.
        ignored: Tensors that no step reads.
        more: Further keys of `config.json`, worked out from those that are there.
    """

    model_type: str
    names: Mapping[str, str]
    keys: Mapping[str, str] = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    made: Mapping[str, Callable[[Settings], Make]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    more: Callable[[Settings], Settings] = lambda _: {}


def _paired(heads: str) -> Callable[[Settings], Make]:
    """Rows whose columns turn together side by side, put back into two halves (`permute` of llama.cpp's converter)."""

    def made(raw: Settings) -> Make:
        count = raw[heads] if raw.get(heads) is not None else raw["num_attention_heads"]

        def put_back(rows: Host) -> Host:
            pairs = rows.reshape(count, -1, 2, *rows.shape[1:])
            return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)

        return put_back

    return made


def _less_one(_: Settings) -> Make:
    """γ − 1: llama.cpp keeps what rows are multiplied by."""
    return lambda gamma: gamma - np.float32(1.0)


def _divided_scores(raw: Settings) -> Settings:
    """Gemma 2 divides scores by √ of the width of a head, and in its largest size of d_model ÷ heads."""
    by_heads = raw["hidden_size"] // raw["num_attention_heads"]
    width = by_heads if raw["num_hidden_layers"] == LAYERS_OF_27B else raw.get("head_dim") or by_heads
    return {"query_pre_attn_scalar": width}


def _turned(_: Settings) -> Make:
    return np.transpose


_ROTARY = {
    **dict.fromkeys(("attn_q.weight", "attn_q.bias"), _paired("num_attention_heads")),
    **dict.fromkeys(("attn_k.weight", "attn_k.bias"), _paired("num_key_value_heads")),
}
_CAPS = {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"}
_WINDOW = {"attention.sliding_window": "sliding_window"}

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("llama", LLAMA_NAMES, made=_ROTARY, ignored=frozenset({"rope_freqs.weight"})),
    "qwen2": Architecture("qwen2", LLAMA_NAMES),
    "qwen3": Architecture("qwen3", LLAMA_NAMES),
    "phi3": Architecture("phi3", PHI3_NAMES, _WINDOW),
    "gemma": Architecture("gemma", LLAMA_NAMES, made={"norm.weight": _less_one}),
    "gemma2": Architecture(
        "gemma2", GEMMA2_NAMES, {**_WINDOW, **_CAPS}, made={"norm.weight": _less_one}, more=_divided_scores
    ),
    "gpt2": Architecture(
        "gpt2",
        GPT2_NAMES,
        {
            "embedding_length": "n_embd",
            "feed_forward_length": "n_inner",
            "block_count": "n_layer",
            "attention.head_count": "n_head",
            "context_length": "n_positions",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        made=dict.fromkeys(
            ("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight"),
            _turned,
        ),
    ),
    "bert": Architecture("bert", BERT_NAMES, fixed={"hidden_act": "gelu"}),
}
"""By the name that `general.architecture` gives."""


def architecture_of(file: GgufFile) -> Architecture:
    """The architecture of a file.

    Raises:
        InputError: It is not known, or the file is one part of several.
    """
    name = file.architecture
    if file.metadata.get("split.count", 0) > 1:
        raise InputError(f"{file.path}: one part of {file.metadata['split.count']}: merge them with llama-gguf-split")
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise InputError(f"{file.path}: architecture {shown(name)} is not read from GGUF: {known} are")
    if file.metadata.get(f"{name}.expert_count", 0):
        raise InputError(f"{file.path}: {name} with experts is not read from GGUF: name the folder of safetensors")
    return ARCHITECTURES[name]


def settings_of(file: GgufFile) -> dict[str, Any]:
    """What a `config.json` would say.

    Raises:
        InputError: The architecture is not known, or a setting of it is not read.
    """
    architecture, name = architecture_of(file), file.architecture
    raw: dict[str, Any] = {"model_type": architecture.model_type, **architecture.fixed}
    for entry, key in {**SHARED_KEYS, **architecture.keys}.items():
        value = file.metadata.get(f"{name}.{entry}")
        if value is not None:
            raw[key] = value.tolist() if isinstance(value, np.ndarray) else value
    missing = next((entry for entry in NEEDED if not file.metadata.get(f"{name}.{entry}")), None)
    if missing is not None:
        raise InputError(f"{file.path}: its metadata have no {name}.{missing}: copy it again")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or not embedding.shape:
        raise InputError(f"{file.path}: no tensor token_embd.weight: it holds no model")
    raw["vocab_size"] = embedding.shape[0]
    raw["tie_word_embeddings"] = "output.weight" not in file.tensors
    if "token_types.weight" in file.tensors:
        raw["type_vocab_size"] = file.tensors["token_types.weight"].shape[0]
    return {**raw, **architecture.more(raw), **_scaled_positions(file)}


def _scaled_positions(file: GgufFile) -> dict[str, Any]:
    """How rotary positions are scaled; those of Llama 3.1 are told by a tensor."""
    name = file.architecture
    kind, factor = (file.metadata.get(f"{name}.rope.scaling.{key}") for key in ("type", "factor"))
    if kind not in (None, "none", "linear") or any(key.startswith("rope_factors") for key in file.tensors):
        raise InputError(f"{file.path}: rotary positions scaled by {shown(kind or 'longrope')} are not read from GGUF")
    turned, width = (file.metadata.get(f"{name}.{key}") for key in ("rope.dimension_count", "attention.key_length"))
    if turned is not None and width is not None and turned != width:
        raise InputError(f"{file.path}: {turned} of {width} columns of a head are turned, which is not read from GGUF")
    if "rope_freqs.weight" in file.tensors:
        return {"rope_parameters": _llama3(file)}
    return {"rope_scaling": {"rope_type": "linear", "factor": factor}} if kind == "linear" else {}


def _llama3(file: GgufFile) -> dict[str, Any]:
    """The numbers of Meta's scaling; the tensor says how much slower every pair of columns turns."""
    from tui_transformer.model.families.rope import read_rope

    only = GgufFile(file.path, {}, {"rope_freqs.weight": file.tensors["rope_freqs.weight"]}, file.size)
    slower = open_gguf(only, lambda name: (name, None)).read("rope_freqs.weight", np.asarray)
    theta = file.metadata.get(f"{file.architecture}.rope.freq_base", 10000.0)
    rope = {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": float(slower.max()),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    width = 2 * len(slower)
    plain = theta ** (-np.arange(len(slower)) * 2 / width)
    found = np.array(read_rope({"rope_parameters": rope}).rotary(width).frequencies)
    if not np.allclose(plain / found, slower, rtol=1e-4):
        raise InputError(f"{file.path}: rope_freqs.weight is not the scaling of Llama 3.1: it is not read from GGUF")
    return rope


def open_model(file: GgufFile) -> GgufTensors:
    """The tensors under the names of the published checkpoint.

    Raises:
        InputError: The architecture is not known, or a tensor is damaged.
    """
    architecture, raw = architecture_of(file), settings_of(file)
    kept = {name: entry for name, entry in file.tensors.items() if name not in architecture.ignored}
    place = functools.partial(_placed, architecture, raw)
    return open_gguf(GgufFile(file.path, file.metadata, kept, file.size), place)


def _placed(architecture: Architecture, raw: Settings, name: str) -> tuple[str, Make | None]:
    stem, _, ending = name.rpartition(".")
    own = architecture.names.get(NUMBER.sub("{}", stem))
    made = next((make(raw) for end, make in architecture.made.items() if name.endswith(end)), None)
    numbers = NUMBER.findall(name)
    return (name if own is None else f"{own.format(*numbers)}.{ending}"), made
