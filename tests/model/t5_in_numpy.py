"""T5 in plain NumPy, from the tensors of a published file; one sentence, no padding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from plain_numpy import Array, Tensors, attention, gelu_tanh, relu, rms_norm, silu

SUBLAYERS = {"encoder": ("SelfAttention", "DenseReluDense"), "decoder": ("SelfAttention", "EncDecAttention", "Dense")}


def shapes(config: Mapping[str, Any], *, gated: bool, head: bool) -> dict[str, tuple[int, ...]]:
    """The tensors of a file and their shapes."""
    d, heads = config["d_model"], config["num_heads"]
    shapes_by_name = {"shared.weight": (config["vocab_size"], d)} | (
        {"lm_head.weight": (config["vocab_size"], d)} if head else {}
    )
    for stack, layers in (("encoder", config["num_layers"]), ("decoder", config["num_decoder_layers"])):
        shapes_by_name[f"{stack}.final_layer_norm.weight"] = (d,)
        table = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        shapes_by_name[table] = (config["relative_attention_num_buckets"], heads)
        for i in range(layers):
            shapes_by_name |= block_shapes(
                f"{stack}.block.{i}.layer", stack, d, heads * config["d_kv"], config["d_ff"], gated
            )
    return shapes_by_name


def block_shapes(base: str, stack: str, d: int, inner: int, d_ff: int, gated: bool) -> dict[str, tuple[int, ...]]:
    *attentions, _ = SUBLAYERS[stack]
    last = len(attentions)
    shapes_by_name = {f"{base}.{place}.layer_norm.weight": (d,) for place in range(last + 1)}
    for place, name in enumerate(attentions):
        shapes_by_name |= {f"{base}.{place}.{name}.{part}.weight": (inner, d) for part in "qkv"}
        shapes_by_name[f"{base}.{place}.{name}.o.weight"] = (d, inner)
    shapes_by_name |= {f"{base}.{last}.DenseReluDense.{name}.weight": (d_ff, d) for name in weight_names(gated)}
    return shapes_by_name | {f"{base}.{last}.DenseReluDense.wo.weight": (d, d_ff)}


def weight_names(gated: bool) -> tuple[str, ...]:
    return ("wi_0", "wi_1") if gated else ("wi",)


def bucket(relative: int, count: int, farthest: int, *, bidirectional: bool) -> int:
    """The bucket of key − query, found by looking for the last one that begins at this distance or nearer."""
    if bidirectional:
        count //= 2
        start, distance = (count if relative > 0 else 0), abs(relative)
    else:
        start, distance = 0, max(-relative, 0)
    exact = count // 2
    if distance < exact:
        return start + distance
    begins = [exact * (farthest / exact) ** (step / (count - exact)) for step in range(count - exact)]
    return start + exact + sum(distance >= begin - 1e-9 for begin in begins) - 1


def bias(table: Array, queries: int, farthest: int, *, bidirectional: bool) -> Array:
    """h × n × n."""
    rows = [
        [table[bucket(key - query, len(table), farthest, bidirectional=bidirectional)] for key in range(queries)]
        for query in range(queries)
    ]
    return np.moveaxis(np.array(rows), 2, 0)


ACTIVATIONS = {"relu": relu, "gated-gelu": gelu_tanh, "gated-silu": silu}


def attend(tensors: Tensors, name: str, x: Array, memory: Array, heads: int, added: Any, *, causal: bool) -> Array:
    query, key, value = (
        source @ tensors[f"{name}.{part}.weight"].T for part, source in (("q", x), ("k", memory), ("v", memory))
    )
    return attention(query, key, value, heads, added, causal=causal) @ tensors[f"{name}.o.weight"].T


def feed_forward(tensors: Tensors, name: str, x: Array, kind: str) -> Array:
    first, *second = (x @ tensors[f"{name}.{part}.weight"].T for part in weight_names(kind.startswith("gated")))
    hidden = ACTIVATIONS[kind](first)
    for other in second:
        hidden = hidden * other
    return hidden @ tensors[f"{name}.wo.weight"].T


def stack_output(
    tensors: Tensors, config: Mapping[str, Any], stack: str, layers: int, ids: list[int], memory: Array | None
) -> Array:
    x, heads, epsilon = tensors["shared.weight"][ids], config["num_heads"], config["layer_norm_epsilon"]
    table = tensors[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    encoder = stack == "encoder"
    added = bias(table, len(ids), config["relative_attention_max_distance"], bidirectional=encoder)
    for i in range(layers):
        base = f"{stack}.block.{i}.layer"
        normal = rms_norm(x, tensors[f"{base}.0.layer_norm.weight"], epsilon)
        x = x + attend(tensors, f"{base}.0.SelfAttention", normal, normal, heads, added, causal=not encoder)
        if memory is not None:
            normal = rms_norm(x, tensors[f"{base}.1.layer_norm.weight"], epsilon)
            x = x + attend(tensors, f"{base}.1.EncDecAttention", normal, memory, heads, 0.0, causal=False)
        last = f"{base}.{1 if encoder else 2}"
        normal = rms_norm(x, tensors[f"{last}.layer_norm.weight"], epsilon)
        x = x + feed_forward(tensors, f"{last}.DenseReluDense", normal, config["feed_forward_proj"])
    return rms_norm(x, tensors[f"{stack}.final_layer_norm.weight"], epsilon)


def logits(
    tensors: Tensors, config: Mapping[str, Any], ids: list[int], decoder_ids: list[int], *, scaled: bool
) -> Array:
    memory = stack_output(tensors, config, "encoder", config["num_layers"], ids, None)
    x = stack_output(tensors, config, "decoder", config["num_decoder_layers"], decoder_ids, memory)
    if scaled:
        return x * config["d_model"] ** -0.5 @ tensors["shared.weight"].T
    return x @ tensors.get("lm_head.weight", tensors["shared.weight"]).T
