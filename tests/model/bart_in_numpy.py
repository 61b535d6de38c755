"""BART and Marian in plain NumPy, from the tensors of a published file; one sentence, no padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from plain_numpy import Array, Tensors, attention, gelu, layer_norm, linear, relu, silu

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {"relu": relu, "swish": silu, "gelu": gelu}


def shapes(config: Mapping[str, Any], prefix: str, *, learned: bool) -> dict[str, tuple[int, ...]]:
    """The tensors of a file and their shapes, without the bias of the logits."""
    d = config["d_model"]
    table = {f"{prefix}shared.weight": (config["vocab_size"], d)}
    for stack in ("encoder", "decoder"):
        base = f"{prefix}{stack}"
        if learned:
            table[f"{base}.embed_positions.weight"] = (config["max_position_embeddings"] + 2, d)
            table |= pair(f"{base}.layernorm_embedding", (d,))
        for i in range(config[f"{stack}_layers"]):
            table |= layer_shapes(f"{base}.layers.{i}", stack, d, config[f"{stack}_ffn_dim"])
    return table


def layer_shapes(base: str, stack: str, d: int, inner: int) -> dict[str, tuple[int, ...]]:
    table = {}
    for name in ("self_attn", "encoder_attn")[: 2 if stack == "decoder" else 1]:
        for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
            table |= pair(f"{base}.{name}.{projection}", (d, d))
        table |= pair(f"{base}.{name}_layer_norm", (d,))
    return (
        table
        | pair(f"{base}.fc1", (inner, d))
        | pair(f"{base}.fc2", (d, inner))
        | pair(f"{base}.final_layer_norm", (d,))
    )


def pair(name: str, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def attend(tensors: Tensors, name: str, x: Array, memory: Array, heads: int, *, causal: bool) -> Array:
    query, key, value = (
        linear(tensors, f"{name}.{part}_proj", source) for part, source in (("q", x), ("k", memory), ("v", memory))
    )
    query = query / math.sqrt(x.shape[1] // heads)
    context = attention(query, key, value, heads, 0.0, causal=causal)
    return layer_norm(tensors, f"{name}_layer_norm", x + linear(tensors, f"{name}.out_proj", context))


def sinusoids(length: int, width: int) -> Array:
    """All sines, then all cosines."""
    table = np.zeros((length, width))
    for place in range(length):
        for pair_ in range(width // 2):
            angle = place / 10000 ** (2 * pair_ / width)
            table[place, pair_], table[place, width // 2 + pair_] = math.sin(angle), math.cos(angle)
    return table


def embedding(tensors: Tensors, config: Mapping[str, Any], prefix: str, stack: str, ids: list[int]) -> Array:
    scale = math.sqrt(config["d_model"]) if config["scale_embedding"] else 1.0
    words = tensors[f"{prefix}shared.weight"][ids] * scale
    table = tensors.get(f"{prefix}{stack}.embed_positions.weight")
    if table is None:
        return words + sinusoids(len(ids), config["d_model"])
    return layer_norm(tensors, f"{prefix}{stack}.layernorm_embedding", words + table[2 : 2 + len(ids)])


def stack_output(
    tensors: Tensors, config: Mapping[str, Any], prefix: str, stack: str, x: Array, memory: Array | None
) -> Array:
    heads, activate = config[f"{stack}_attention_heads"], ACTIVATIONS[config["activation_function"]]
    for i in range(config[f"{stack}_layers"]):
        base = f"{prefix}{stack}.layers.{i}"
        x = attend(tensors, f"{base}.self_attn", x, x, heads, causal=stack == "decoder")
        if memory is not None:
            x = attend(tensors, f"{base}.encoder_attn", x, memory, heads, causal=False)
        hidden = activate(linear(tensors, f"{base}.fc1", x))
        x = layer_norm(tensors, f"{base}.final_layer_norm", x + linear(tensors, f"{base}.fc2", hidden))
    return x


def logits(tensors: Tensors, config: Mapping[str, Any], prefix: str, ids: list[int], decoder_ids: list[int]) -> Array:
    x = embedding(tensors, config, prefix, "encoder", ids)
    memory = stack_output(tensors, config, prefix, "encoder", x, None)
    x = embedding(tensors, config, prefix, "decoder", decoder_ids)
    x = stack_output(tensors, config, prefix, "decoder", x, memory)
    result = x @ tensors[f"{prefix}shared.weight"].T
    return result + tensors["final_logits_bias"][0] if "final_logits_bias" in tensors else result
