"""Rotary positions as the metadata and tensors of a GGUF file describe them, as `rope_parameters` of `config.json`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.checks import shown
from tui_transformer.model.families.rope import read_rope
from tui_transformer.model.gguf_tensors import Placed, open_gguf

USUAL_THETA = 10000.0
SLOWER, SHORT, LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
READ_HERE = frozenset({SLOWER, SHORT, LONG})
"""Tensors that no step reads."""

OLD_CONTEXT = "original_max_position_embeddings"
Settings = Mapping[str, Any]


def rope_of(
    file: GgufFile, raw: Settings, *, in_part: bool = False, usual: str = "none", theta: float = USUAL_THETA
) -> dict[str, Any]:
    """The rotary positions of a file.

    Args:
        file: What the file says.
        raw: The settings that are known.
        in_part: The architecture may turn a part of the columns of a head.
        usual: How they are scaled where the file does not say.
        theta: θ where the file does not say.

    Raises:
        InputError: They are scaled in a way that is not read.
    """
    kind, theta = str(_said(file, "scaling.type") or usual), _theta(file, ("freq_base", "global.freq_base"), theta)
    if SLOWER in file.tensors:
        scaling = _llama3(file, theta)
    elif SHORT in file.tensors and LONG in file.tensors:
        scaling = _longrope(file, raw)
    elif kind in SCALED:
        scaling = SCALED[kind](file)
    else:
        raise InputError(f"{file.path}: rotary positions scaled by {shown(kind)} are not read from GGUF")
    return {**scaling, "rope_theta": theta, **_in_part(file, raw, in_part=in_part)}


def of_windows(file: GgufFile) -> dict[str, Any]:
    """The rotary positions of layers with a window, where they have their own: never scaled."""
    return {"rope_type": "default", "rope_theta": _theta(file, ("freq_base_swa", "local.freq_base"))}


def _said(file: GgufFile, entry: str) -> Any:
    return file.metadata.get(f"{file.architecture}.rope.{entry}")


def _theta(file: GgufFile, entries: tuple[str, ...], usual: float = USUAL_THETA) -> float:
    """θ under the first of its names; the second is Ollama's."""
    base = next((said for entry in entries if (said := _said(file, entry))), usual)
    if not isinstance(base, int | float) or not 1.0 <= base < math.inf:
        raise InputError(f"{file.path}: its metadata have {shown(base)} for rope.{entries[0]}: copy it again")
    return float(base)


def _in_part(file: GgufFile, raw: Settings, *, in_part: bool) -> dict[str, Any]:
    turned = _said(file, "dimension_count")
    width = raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]
    if turned is None or turned == width or not isinstance(width, int) or not isinstance(turned, int):
        return {}
    if not in_part or not 0 < turned < width:
        raise InputError(f"{file.path}: {turned} of {width} columns of a head are turned, which is not read from GGUF")
    return {"partial_rotary_factor": turned / width}


def _linear(file: GgufFile) -> dict[str, Any]:
    return {"rope_type": "linear", "factor": _said(file, "scaling.factor")}


def _yarn(file: GgufFile) -> dict[str, Any]:
    """With the bounds that the file says, else those of the paper (Peng et al. 2023)."""
    keys = {
        "factor": "scaling.factor",
        OLD_CONTEXT: "scaling.original_context_length",
        "beta_fast": "scaling.yarn_beta_fast",
        "beta_slow": "scaling.yarn_beta_slow",
        "attention_factor": "scaling.yarn_attn_factor",
    }
    said = {key: _said(file, entry) for key, entry in keys.items()}
    return {"rope_type": "yarn", **{key: value for key, value in said.items() if value is not None}}


SCALED: Mapping[str, Callable[[GgufFile], dict[str, Any]]] = {
    "none": lambda _: {"rope_type": "default"},
    "linear": _linear,
    "yarn": _yarn,
}
"""By the name that the file gives."""


def _numbers(file: GgufFile, name: str) -> Host:
    only = GgufFile(file.path, {}, {name: file.tensors[name]}, file.size)
    return open_gguf(only, lambda own, _: (Placed(own),)).read(name, np.asarray)


def _longrope(file: GgufFile, raw: Settings) -> dict[str, Any]:
    old = _said(file, "scaling.original_context_length") or raw.get("max_position_embeddings")
    factor = _said(file, "scaling.attn_factor")
    divisors = {key: _numbers(file, name).ravel().tolist() for key, name in _DIVISORS.items()}
    given = {} if factor is None else {"attention_factor": factor}
    return {"rope_type": "longrope", OLD_CONTEXT: old, **divisors, **given}


_DIVISORS = {"short_factor": SHORT, "long_factor": LONG}


def _llama3(file: GgufFile, theta: float) -> dict[str, Any]:
    """The numbers of Meta's scaling; the tensor says how much slower every pair of columns turns."""
    slower = _numbers(file, SLOWER).ravel()
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
