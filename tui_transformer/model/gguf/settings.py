"""What the metadata of an architecture say: kinds of layers, experts, rotary positions, as keys of `config.json`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.checks import shown
from tui_transformer.model.families import family_of
from tui_transformer.model.families.rope import FULL, SLIDING, read_rope
from tui_transformer.model.families.style import LLAMA
from tui_transformer.model.gguf.tensors import open_gguf

Settings = Mapping[str, Any]
More = Callable[[GgufFile, dict[str, Any]], Settings]
"""Further settings, from what the file says and those that are known."""


def has(file: GgufFile, name: str) -> bool:
    """Whether the first layer has a tensor."""
    return f"blk.0.{name}" in file.tensors


def said(file: GgufFile, entry: str) -> Any:
    """What the metadata have for the architecture, arrays as lists; None for nothing."""
    value = file.metadata.get(f"{file.architecture}.{entry}")
    return value.tolist() if isinstance(value, np.ndarray) else value


def kinds(file: GgufFile, raw: Settings, every: int) -> list[str]:
    """The kind of every layer: as the file says in a list, else a window in all but one of so many, the last of them.

    How many those are the file may say instead.
    """
    pattern, layers = said(file, "attention.sliding_window_pattern"), range(raw["num_hidden_layers"])
    pattern = every if pattern is None else pattern
    if isinstance(pattern, int) and pattern > 0:
        return [SLIDING if (i + 1) % pattern else FULL for i in layers]
    marks = pattern if isinstance(pattern, list) else []
    if len(marks) < len(layers) or not all(mark in (0, 1) for mark in marks):
        raise InputError(
            f"{file.path}: its sliding_window_pattern is not a list of yes and no for {len(layers)} layers"
        )
    return [SLIDING if marks[i] else FULL for i in layers]


GEMMA3_THETA, GEMMA3_LONGER = 1e6, 8.0
LAYERS_OF_LONGER = (34, 48, 62)
"""Of the sizes of Gemma 3 whose layers without a window have slower positions (Gemma Team 2025, §2)."""

LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}


def scores(file: GgufFile, raw: Settings) -> int:
    """Scores are divided by √ of the width of a head, and in the largest size of d_model ÷ heads."""
    by_heads: int = raw["hidden_size"] // raw["num_attention_heads"]
    largest = raw["num_hidden_layers"] == LAYERS_OF_27B[file.architecture]
    return by_heads if largest else raw.get("head_dim") or by_heads


def gemma3(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """No window in every sixth layer; those with one have rotary positions of their own.

    Ollama's files say nothing of slower positions, which the larger sizes have.
    """
    rope = rope_of(file, raw, theta=GEMMA3_THETA)
    of_ollama = said(file, "vision.block_count") is not None
    if of_ollama and raw["num_hidden_layers"] in LAYERS_OF_LONGER and rope["rope_type"] == "default":
        rope |= {"rope_type": "linear", "factor": GEMMA3_LONGER}
    of_layers = kinds(file, raw, 6)
    return {
        "query_pre_attn_scalar": scores(file, raw),
        "layer_types": of_layers if raw.get("sliding_window") else [FULL] * len(of_layers),
        "rope_parameters": {FULL: rope, SLIDING: of_windows(file)},
    }


def olmo2(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """OLMo 3 where there are windows: in layers with one, rotary positions are not scaled."""
    if not raw.get("sliding_window"):
        return {}
    rope = rope_of(file, raw)
    return {
        "model_type": "olmo3",
        "layer_types": kinds(file, raw, 4),
        "rope_parameters": {FULL: rope, SLIDING: {"rope_type": "default", "rope_theta": rope["rope_theta"]}},
    }


def gpt_oss(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The bounds of its scaled positions are not rounded."""
    of_layers = kinds(file, raw, 2)
    usual = "yarn" if said(file, "rope.scaling.factor") is not None else "none"
    return {"layer_types": of_layers, "rope_parameters": {**rope_of(file, raw, usual=usual), "truncate": False}}


def phi3(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The old context is a setting of the model."""
    rope = rope_of(file, raw)
    old = {OLD_CONTEXT: rope[OLD_CONTEXT]} if OLD_CONTEXT in rope else {}
    return {**old, "rope_parameters": rope}


def t5(file: GgufFile, _: dict[str, Any]) -> Settings:
    """Gated where there is a gate; distances as llama.cpp has them."""
    gated = "enc.blk.0.ffn_gate.weight" in file.tensors
    return {"feed_forward_proj": "gated-gelu" if gated else "relu", "relative_attention_max_distance": 128}


def falcon(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """The new architecture where there are several key heads, or two norms."""
    two, keys = has(file, "attn_norm_2.weight"), raw.get("num_kv_heads") or 1
    new = two or keys > 1
    chosen = {"new_decoder_architecture": new, "multi_query": keys == 1}
    return {**chosen, "num_ln_in_parallel_attn": (2 if two else 1) if new else None}


def modern_bert(file: GgufFile, raw: dict[str, Any]) -> Settings:
    """Every third layer sees all keys, the first among them."""
    pattern = said(file, "attention.sliding_window_pattern")
    every = pattern if isinstance(pattern, int) and pattern > 0 else 3
    kinds = [SLIDING if i % every else FULL for i in range(raw["num_hidden_layers"])]
    ropes = {FULL: rope_of(file, raw), SLIDING: of_windows(file)}
    return {"layer_types": kinds, "rope_parameters": ropes, "norm_bias": has(file, "ffn_norm.bias")}


USUAL_THETA = 10000.0
SLOWER, SHORT, LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
READ_HERE = frozenset({SLOWER, SHORT, LONG})
"""Tensors that no step reads."""

OLD_CONTEXT = "original_max_position_embeddings"


def rope_of(file: GgufFile, raw: Settings, *, usual: str = "linear", theta: float = USUAL_THETA) -> dict[str, Any]:
    """The rotary positions of a file, scaled as `usual` where it does not say how, and of such a θ.

    Raises:
        InputError: They are scaled in a way that is not read.
    """
    theta = _theta(file, ("freq_base", "global.freq_base"), theta)
    scaling = _scaling(file, raw, str(said(file, "rope.scaling.type") or usual), theta)
    in_part = getattr(family_of(raw["model_type"]), "style", LLAMA).part is not None  # of the columns of a head
    turned, part = said(file, "rope.dimension_count"), {"partial_rotary_factor": 1.0} if in_part else {}
    width = raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]
    if turned not in (None, width) and isinstance(width, int) and isinstance(turned, int):
        if not in_part or not 0 < turned < width:
            wrong = f"{turned} of {width} columns of a head are turned"
            raise InputError(f"{file.path}: {wrong}, which is not read from GGUF")
        part = {"partial_rotary_factor": turned / width}
    return {**scaling, "rope_theta": theta, **part}


def of_windows(file: GgufFile) -> dict[str, Any]:
    """The rotary positions of layers with a window, where they have their own: never scaled."""
    return {"rope_type": "default", "rope_theta": _theta(file, ("freq_base_swa", "local.freq_base"))}


def _theta(file: GgufFile, entries: tuple[str, ...], usual: float = USUAL_THETA) -> float:
    """θ under the first of its names; the second is Ollama's."""
    base = next((value for entry in entries if (value := said(file, f"rope.{entry}"))), usual)
    if not isinstance(base, int | float) or not 1.0 <= base < math.inf:
        raise InputError(f"{file.path}: its metadata have {shown(base)} for rope.{entries[0]}: copy it again")
    return float(base)


YARN: Mapping[str, str] = {
    "factor": "rope.scaling.factor",
    OLD_CONTEXT: "rope.scaling.original_context_length",
    "beta_fast": "rope.scaling.yarn_beta_fast",
    "beta_slow": "rope.scaling.yarn_beta_slow",
    "attention_factor": "rope.scaling.yarn_attn_factor",
}


def _scaling(file: GgufFile, raw: Settings, kind: str, theta: float) -> dict[str, Any]:
    """How they are scaled: as tensors say, or as the metadata do, yarn by default with the bounds of the paper."""
    if SLOWER in file.tensors:
        return _llama3(file, theta)
    if SHORT in file.tensors and LONG in file.tensors:
        old = said(file, "rope.scaling.original_context_length") or raw.get("max_position_embeddings")
        divisors = {"short_factor": _numbers(file, SHORT).tolist(), "long_factor": _numbers(file, LONG).tolist()}
        factor = said(file, "rope.scaling.attn_factor")
        given = {} if factor is None else {"attention_factor": factor}
        return {"rope_type": "longrope", OLD_CONTEXT: old, **divisors, **given}
    if kind == "yarn":
        values = {key: said(file, entry) for key, entry in YARN.items()}
        return {"rope_type": kind, **{key: value for key, value in values.items() if value is not None}}
    if kind not in ("none", "linear"):
        raise InputError(f"{file.path}: rotary positions scaled by {shown(kind)} are not read from GGUF")
    entries = ("rope.scaling.factor", "rope.scale_linear") if kind == "linear" else ()  # the second is the old name
    factor = next((value for entry in entries if (value := said(file, entry)) is not None), 0.0)
    return {"rope_type": "linear", "factor": factor} if factor else {"rope_type": "default"}


def _numbers(file: GgufFile, name: str) -> Host:
    only = GgufFile(file.path, {}, {name: file.tensors[name]}, file.size)
    return open_gguf(only, lambda own, _: (own, None)).read(name, np.asarray).ravel()


def _llama3(file: GgufFile, theta: float) -> dict[str, Any]:
    """The numbers of Meta's scaling; the tensor says how much slower every pair of columns turns."""
    slower = _numbers(file, SLOWER)
    rope = {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": float(slower.max(initial=1.0)),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        OLD_CONTEXT: 8192,
    }
    width = 2 * len(slower)
    plain = theta ** (-np.arange(len(slower)) * 2 / max(width, 1))
    frequencies = np.array(read_rope({"rope_parameters": rope}).rotary(width).frequencies) if width else plain
    if not width or not np.allclose(plain / frequencies, slower, rtol=1e-4):
        raise InputError(f"{file.path}: {SLOWER} is not the scaling of Llama 3.1: it is not read from GGUF")
    return rope
