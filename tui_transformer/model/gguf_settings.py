"""Settings that a GGUF file's metadata lack and `config.json` has, worked out for each architecture of llama.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.gguf_names import Settings
from tui_transformer.model.gguf_positions import OLD_CONTEXT, of_windows, rope_of

More = Callable[[GgufFile, dict[str, Any]], Settings]
"""Further settings, from what the file says and those that are known."""


def rope_alone(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Rotary positions of all columns, the same in every layer."""
    return {"rope_parameters": rope_of(file, raw)}


def has(file: GgufFile, name: str) -> bool:
    """Whether the first layer has a tensor."""
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


def llama(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Mixtral where there are experts; biases as there are tensors."""
    chosen = {"model_type": "mixtral"} if raw.get("num_experts") else {}
    biases = {"attention_bias": has(file, "attn_output.bias"), "mlp_bias": has(file, "ffn_up.bias")}
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


def gemma2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The divisor of scores."""
    return {"query_pre_attn_scalar": _scores(file, raw), **rope_alone(file, raw)}


def gemma3(file: GgufFile, raw: dict[str, Any]) -> Settings:
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


def olmo2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """OLMo 3 where there are windows: in layers with one, rotary positions are not scaled."""
    if not raw.get("sliding_window"):
        return rope_alone(file, raw)
    rope = rope_of(file, raw)
    return {
        "model_type": "olmo3",
        "layer_types": _kinds(file, raw, lambda layer: (layer + 1) % 4 != 0),
        "rope_parameters": {FULL: rope, SLIDING: {"rope_type": "default", "rope_theta": rope["rope_theta"]}},
    }


def gpt_oss(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The bounds of its scaled positions are not rounded."""
    kinds = _kinds(file, raw, lambda layer: layer % 2 == 0)
    return {"layer_types": kinds, "rope_parameters": {**rope_of(file, raw, usual=_usual(file)), "truncate": False}}


def _usual(file: GgufFile) -> str:
    """Ollama's files give the factor and not its kind."""
    return "yarn" if f"{file.architecture}.rope.scaling.factor" in file.metadata else "none"


def in_part(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Rotary positions of a part of the columns of a head."""
    return {"rope_parameters": rope_of(file, raw, in_part=True)}


def phi3(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The old context is a setting of the model."""
    rope = rope_of(file, raw, in_part=True)
    old = {OLD_CONTEXT: rope[OLD_CONTEXT]} if OLD_CONTEXT in rope else {}
    return {**old, "rope_parameters": rope}


def stablelm(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Biases, norms of heads and parallel sublayers, as there are tensors."""
    settings = {"use_qkv_bias": has(file, "attn_q.bias"), "qk_layernorm": has(file, "attn_q_norm.weight")}
    return {**settings, "use_parallel_residual": not has(file, "ffn_norm.weight"), **in_part(file, raw)}


def cohere(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Norms of heads, as there are tensors."""
    return {"use_qk_norm": has(file, "attn_q_norm.weight"), **rope_alone(file, raw)}


def cohere2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """No window, and no rotary positions, in every fourth layer."""
    return {"layer_types": _kinds(file, raw, lambda layer: (layer + 1) % 4 != 0), **rope_alone(file, raw)}


def exaone4(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The smaller size has no windows."""
    kinds = _kinds(file, raw, lambda layer: (layer + 1) % 4 != 0) if raw.get("sliding_window") else None
    return {"layer_types": kinds, **rope_alone(file, raw)}


def biased(**biases: str) -> More:
    """Settings of biases, each as a tensor of the first layer is there."""

    def more(file: GgufFile, raw: dict[str, Any]) -> Settings:
        return {**{key: has(file, tensor) for key, tensor in biases.items()}, **rope_alone(file, raw)}

    return more


def glm4(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Biases, as there are tensors."""
    return {"attention_bias": has(file, "attn_q.bias"), **in_part(file, raw)}


def t5(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Gated where there is a gate; distances as llama.cpp has them."""
    del raw
    gated = "enc.blk.0.ffn_gate.weight" in file.tensors
    return {"feed_forward_proj": "gated-gelu" if gated else "relu", "relative_attention_max_distance": 128}


def falcon(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The new architecture where there are several key heads, or two norms."""
    two, keys = has(file, "attn_norm_2.weight"), raw.get("num_kv_heads") or 1
    new = two or keys > 1
    chosen = {"new_decoder_architecture": new, "multi_query": keys == 1}
    return {**chosen, "num_ln_in_parallel_attn": (2 if two else 1) if new else None, **rope_alone(file, raw)}


def modern_bert(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Every third layer sees all keys, the first among them."""
    pattern = file.metadata.get(f"{file.architecture}.attention.sliding_window_pattern")
    every = pattern if isinstance(pattern, int) and pattern > 0 else 3
    kinds = [SLIDING if i % every else FULL for i in range(raw["num_hidden_layers"])]
    ropes = {FULL: rope_of(file, raw), SLIDING: of_windows(file)}
    return {"layer_types": kinds, "rope_parameters": ropes, "norm_bias": has(file, "ffn_norm.bias")}


def no_rope(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Nothing: positions are learned, or distances."""
    del file, raw
    return {}
