"""Architectures of llama.cpp: which family they are, and what their metadata say that is otherwise than in Llama.

How the tensors differ from the published ones is what llama.cpp's converter does to them (`conversion/*.py` there).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model import gguf_names as names
from tui_transformer.model.checks import shown
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.gguf_names import Names, Settings
from tui_transformer.model.gguf_positions import OLD_CONTEXT, of_windows, rope_of
from tui_transformer.model.gguf_tensors import Make

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")

More = Callable[[GgufFile, dict[str, Any]], Settings]
"""Further settings, from what the file says and those that are known."""


def rope_alone(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Rotary positions of all columns, the same in every layer."""
    return {"rope_parameters": rope_of(file, raw)}


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        model_type: The family that computes it.
        names: Where its tensors go.
        keys: Further entries of the metadata → keys of `config.json`.
        fixed: Keys of `config.json` that the metadata do not have.
        made: How tensors differ from the published ones: ends of names → what makes them, given the settings.
        more: Further keys of `config.json`, worked out.
    """

    model_type: str
    names: Names
    keys: Mapping[str, str] = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    made: Mapping[str, Callable[[Settings], Make]] = field(default_factory=dict)
    more: More = rope_alone


# How tensors are made


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


def _turned(_: Settings) -> Make:
    return np.transpose


def _one_row(_: Settings) -> Make:
    """A vector as a matrix of one row."""
    return lambda gate: gate.reshape(1, -1)


_ROTARY = {
    **dict.fromkeys(("attn_q.weight", "attn_q.bias"), _paired("num_attention_heads")),
    **dict.fromkeys(("attn_k.weight", "attn_k.bias"), _paired("num_key_value_heads")),
}
_GEMMA = {"norm.weight": _less_one}


# What the metadata do not say


def _has(file: GgufFile, name: str) -> bool:
    return f"blk.0.{name}" in file.tensors


def _kinds(file: GgufFile, raw: Settings, usual: Callable[[int], bool]) -> list[str]:
    """The kind of every layer: as the file says, in a list or as a period, else as usual (True for a window)."""
    pattern = file.metadata.get(f"{file.architecture}.attention.sliding_window_pattern")
    layers = range(raw["num_hidden_layers"])
    if isinstance(pattern, int) and pattern > 0:
        return [SLIDING if (i + 1) % pattern else FULL for i in layers]
    if pattern is None:
        return [SLIDING if usual(i) else FULL for i in layers]
    marks = list(pattern) if isinstance(pattern, list | np.ndarray) else []
    if len(marks) < len(layers) or not all(mark in (0, 1) for mark in marks):
        raise InputError(
            f"{file.path}: its sliding_window_pattern is not a list of yes and no for {len(layers)} layers"
        )
    return [SLIDING if marks[i] else FULL for i in layers]


def _llama(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Mixtral where there are experts; biases as there are tensors."""
    chosen = {"model_type": "mixtral"} if raw.get("num_experts") else {}
    biases = {"attention_bias": _has(file, "attn_output.bias"), "mlp_bias": _has(file, "ffn_up.bias")}
    return {**chosen, **biases, **rope_alone(file, raw)}


GEMMA3_THETA, GEMMA3_LONGER = 1e6, 8.0
LAYERS_OF_LONGER = (34, 48, 62)
"""Of the sizes of Gemma 3 whose layers without a window have slower positions (Gemma Team 2025, §2)."""

LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}


def _scores(file: GgufFile, raw: Settings) -> int:
    """Scores are divided by √ of the width of a head, and in the largest size of d_model ÷ heads."""
    by_heads: int = raw["hidden_size"] // raw["num_attention_heads"]
    largest = raw["num_hidden_layers"] == LAYERS_OF_27B[file.architecture]
    return by_heads if largest else raw.get("head_dim") or by_heads


def _gemma2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    return {"query_pre_attn_scalar": _scores(file, raw), **rope_alone(file, raw)}


def _gemma3(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """No window in every sixth layer; those with one have rotary positions of their own.

    Ollama's files say nothing of slower positions, which the larger sizes have.
    """
    rope = rope_of(file, raw, theta=GEMMA3_THETA)
    if _is_of_ollama(file) and raw["num_hidden_layers"] in LAYERS_OF_LONGER and rope["rope_type"] == "default":
        rope |= {"rope_type": "linear", "factor": GEMMA3_LONGER}
    kinds = _kinds(file, raw, lambda layer: (layer + 1) % 6 != 0)
    return {
        "query_pre_attn_scalar": _scores(file, raw),
        "layer_types": kinds if raw.get("sliding_window") else [FULL] * len(kinds),
        "rope_parameters": {FULL: rope, SLIDING: of_windows(file)},
    }


def _is_of_ollama(file: GgufFile) -> bool:
    """Whether Ollama made the file of a model that sees pictures, too."""
    return f"{file.architecture}.vision.block_count" in file.metadata


def _olmo2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """OLMo 3 where there are windows: in layers with one, rotary positions are not scaled."""
    if not raw.get("sliding_window"):
        return rope_alone(file, raw)
    rope = rope_of(file, raw)
    return {
        "model_type": "olmo3",
        "layer_types": _kinds(file, raw, lambda layer: (layer + 1) % 4 != 0),
        "rope_parameters": {FULL: rope, SLIDING: {"rope_type": "default", "rope_theta": rope["rope_theta"]}},
    }


def _gpt_oss(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The bounds of its scaled positions are not rounded."""
    kinds = _kinds(file, raw, lambda layer: layer % 2 == 0)
    return {"layer_types": kinds, "rope_parameters": {**rope_of(file, raw, usual=_usual(file)), "truncate": False}}


def _usual(file: GgufFile) -> str:
    """Ollama's files give the factor and not its kind."""
    return "yarn" if f"{file.architecture}.rope.scaling.factor" in file.metadata else "none"


def _in_part(file: GgufFile, raw: dict[str, Any]) -> Settings:
    return {"rope_parameters": rope_of(file, raw, in_part=True)}


def _phi3(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The old context is a setting of the model."""
    rope = rope_of(file, raw, in_part=True)
    old = {OLD_CONTEXT: rope[OLD_CONTEXT]} if OLD_CONTEXT in rope else {}
    return {**old, "rope_parameters": rope}


def _stablelm(file: GgufFile, raw: dict[str, Any]) -> Settings:
    found = {"use_qkv_bias": _has(file, "attn_q.bias"), "qk_layernorm": _has(file, "attn_q_norm.weight")}
    return {**found, "use_parallel_residual": not _has(file, "ffn_norm.weight"), **_in_part(file, raw)}


def _cohere(file: GgufFile, raw: dict[str, Any]) -> Settings:
    return {"use_qk_norm": _has(file, "attn_q_norm.weight"), **rope_alone(file, raw)}


def _cohere2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """No window, and no rotary positions, in every fourth layer."""
    return {"layer_types": _kinds(file, raw, lambda layer: (layer + 1) % 4 != 0), **rope_alone(file, raw)}


def _exaone4(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The smaller size has no windows."""
    kinds = _kinds(file, raw, lambda layer: (layer + 1) % 4 != 0) if raw.get("sliding_window") else None
    return {"layer_types": kinds, **rope_alone(file, raw)}


def _biased(**biases: str) -> More:
    """Settings of biases, each as a tensor of the first layer is there."""

    def more(file: GgufFile, raw: dict[str, Any]) -> Settings:
        return {key: _has(file, tensor) for key, tensor in biases.items()} | rope_alone(file, raw)

    return more


def _t5(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Gated where there is a gate; distances as llama.cpp has them."""
    del raw
    gated = "enc.blk.0.ffn_gate.weight" in file.tensors
    return {"feed_forward_proj": "gated-gelu" if gated else "relu", "relative_attention_max_distance": 128}


def _falcon(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The new architecture where there are several key heads, or two norms."""
    two, keys = _has(file, "attn_norm_2.weight"), raw.get("num_kv_heads") or 1
    new = two or keys > 1
    chosen = {"new_decoder_architecture": new, "multi_query": keys == 1}
    return {**chosen, "num_ln_in_parallel_attn": (2 if two else 1) if new else None, **rope_alone(file, raw)}


def _modern_bert(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Every third layer sees all keys, the first among them."""
    pattern = file.metadata.get(f"{file.architecture}.attention.sliding_window_pattern")
    every = pattern if isinstance(pattern, int) and pattern > 0 else 3
    kinds = [SLIDING if i % every else FULL for i in range(raw["num_hidden_layers"])]
    ropes = {FULL: rope_of(file, raw), SLIDING: of_windows(file)}
    return {"layer_types": kinds, "rope_parameters": ropes, "norm_bias": _has(file, "ffn_norm.bias")}


def _no_rope(file: GgufFile, raw: dict[str, Any]) -> Settings:
    del file, raw
    return {}


_WINDOW = {"attention.sliding_window": "sliding_window"}
_CAPS = {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"}
_EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
_OWN_WIDTH = {"expert_feed_forward_length": "moe_intermediate_size"}
_EPSILON = "attention.layer_norm_epsilon"
_LLAMA = Architecture("llama", names.MIXTRAL, _EXPERTS, made=_ROTARY, more=_llama)
_T5 = Architecture(
    "t5",
    names.T5,
    {
        "feed_forward_length": "d_ff",
        "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
        "attention.relative_buckets_count": "relative_attention_num_buckets",
        "decoder_block_count": "num_decoder_layers",
        "decoder_start_token_id": "decoder_start_token_id",
    },
    more=_t5,
)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "smollm3": replace(_LLAMA, model_type="smollm3", names=names.LLAMA, keys={}),
    "granite": replace(
        _LLAMA,
        model_type="granite",
        names=names.LLAMA,
        keys={
            "attention.scale": "attention_multiplier",
            "embedding_scale": "embedding_multiplier",
            "residual_scale": "residual_multiplier",
            "logit_scale": "logits_scaling",
        },
    ),
    "qwen2": Architecture("qwen2", names.LLAMA),
    "qwen3": Architecture("qwen3", names.LLAMA),
    "qwen2moe": Architecture(
        "qwen2_moe",
        names.QWEN2_MOE,
        {**_EXPERTS, **_OWN_WIDTH, "expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        {"norm_topk_prob": False},
        {"ffn_gate_inp_shexp.weight": _one_row},
    ),
    "qwen3moe": Architecture("qwen3_moe", names.MIXTRAL, {**_EXPERTS, **_OWN_WIDTH}, {"norm_topk_prob": True}),
    "olmo2": Architecture("olmo2", names.OLMO2, _WINDOW, more=_olmo2),
    "olmoe": Architecture("olmoe", names.MIXTRAL, _EXPERTS, {"norm_topk_prob": False}),
    "gpt-oss": Architecture(
        "gpt_oss",
        names.GPT_OSS,
        {**_WINDOW, **_EXPERTS, "expert_feed_forward_length": "intermediate_size"},
        {"attention_bias": True},
        more=_gpt_oss,
    ),
    "gptoss": Architecture(
        "gpt_oss", names.GPT_OSS_OF_OLLAMA, {**_WINDOW, **_EXPERTS}, {"attention_bias": True}, more=_gpt_oss
    ),
    "phi3": Architecture("phi3", names.PHI3, _WINDOW, more=_phi3),
    "phi2": Architecture("phi", names.PHI2, fixed={"hidden_act": "gelu_new"}, more=_in_part),
    "gemma": Architecture("gemma", names.LLAMA, made=_GEMMA),
    "gemma2": Architecture("gemma2", names.GEMMA2, {**_WINDOW, **_CAPS}, made=_GEMMA, more=_gemma2),
    "gemma3": Architecture("gemma3_text", names.GEMMA2, {**_WINDOW, **_CAPS}, made=_GEMMA, more=_gemma3),
    "starcoder2": Architecture("starcoder2", names.STARCODER2, {_EPSILON: "norm_epsilon"}, {"sliding_window": None}),
    "stablelm": Architecture("stablelm", names.STABLELM, more=_stablelm),
    "command-r": Architecture("cohere", names.LLAMA, {"logit_scale": "logit_scale"}, more=_cohere),
    "cohere2": Architecture("cohere2", names.LLAMA, {"logit_scale": "logit_scale", **_WINDOW}, more=_cohere2),
    "seed_oss": Architecture(
        "seed_oss",
        names.SEED_OSS,
        more=_biased(attention_bias="attn_q.bias", attention_out_bias="attn_output.bias", mlp_bias="ffn_up.bias"),
    ),
    "exaone4": Architecture("exaone4", names.OLMO2, _WINDOW, more=_exaone4),
    "ernie4_5": Architecture("ernie4_5", names.LLAMA, more=_biased(use_bias="attn_q.bias")),
    "t5": _T5,
    "t5encoder": _T5,
    "falcon": Architecture(
        "falcon",
        names.FALCON,
        {
            _EPSILON: "layer_norm_epsilon",
            "attention.head_count_kv": "num_kv_heads",
            "feed_forward_length": "ffn_hidden_size",
        },
        {"alibi": False, "bias": False, "parallel_attn": True},
        more=_falcon,
    ),
    "bloom": Architecture(
        "bloom",
        names.BLOOM,
        {
            _EPSILON: "layer_norm_epsilon",
            "block_count": "n_layer",
            "attention.head_count": "n_head",
            "context_length": "seq_length",
        },
        more=_no_rope,
    ),
    "gptneox": Architecture(
        "gpt_neox", names.GPT_NEOX, {"use_parallel_residual": "use_parallel_residual"}, more=_in_part
    ),
    "gpt2": Architecture(
        "gpt2",
        names.GPT2,
        {
            "embedding_length": "n_embd",
            "feed_forward_length": "n_inner",
            "block_count": "n_layer",
            "attention.head_count": "n_head",
            "context_length": "n_positions",
            _EPSILON: "layer_norm_epsilon",
        },
        made=dict.fromkeys(("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight"), _turned),
        more=_no_rope,
    ),
    "bert": Architecture("bert", names.BERT, fixed={"hidden_act": "gelu"}, more=_no_rope),
    "modern-bert": Architecture(
        "modernbert",
        names.MODERN_BERT,
        {
            _EPSILON: "norm_eps",
            "attention.sliding_window": "local_attention",
            "hidden_activation": "hidden_activation",
        },
        more=_modern_bert,
    ),
}
"""By the name that `general.architecture` gives."""


def architecture_of(file: GgufFile) -> Architecture:
    """The architecture of a file.

    Raises:
        InputError: It is not known, or the file is one part of several.
    """
    name = file.architecture
    parts = file.metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise InputError(f"{file.path}: one part of {parts}: merge them with llama-gguf-split")
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise InputError(f"{file.path}: architecture {shown(name)} is not read from GGUF: {known} are")
    found = ARCHITECTURES[name]
    return replace(found, names=names.FALCON_TWO_NORMS) if _has(file, "attn_norm_2.weight") else found
