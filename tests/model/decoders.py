"""Published decoder-only models in a few lines of NumPy, straight from the tensors of their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from plain_numpy import gelu, gelu_tanh, layer_norm, linear, random_tensors, rms_norm, silu, softmax
from saved import checkpoint

from tui_transformer.model import Model

Tensors = dict[str, np.ndarray]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]

GPT2 = {"vocab_size": 11, "n_positions": 9, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 20}
NEOX = {
    "vocab_size": 11,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 16,
    "rotary_pct": 0.25,
}
LLAMA = {
    "vocab_size": 11,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "max_position_embeddings": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100.0,
}


def gpt2_tensors(config: Mapping[str, Any]) -> Tensors:
    d, f = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    shapes = {"wte.weight": (config["vocab_size"], d), "wpe.weight": (config["n_positions"], d)}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    for i in range(config["n_layer"]):
        for name, (rows, columns) in {
            "attn.c_attn": (d, 3 * d),
            "attn.c_proj": (d, d),
            "mlp.c_fc": (d, f),
            "mlp.c_proj": (f, d),
        }.items():
            shapes |= {f"h.{i}.{name}.weight": (rows, columns), f"h.{i}.{name}.bias": (columns,)}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{name}.weight": (d,), f"h.{i}.{name}.bias": (d,)}
    return random_tensors(shapes, 0.5)


def neox_tensors(config: Mapping[str, Any]) -> Tensors:
    d, f, v = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"gpt_neox.embed_in.weight": (v, d), "embed_out.weight": (v, d)}
    norms = ["gpt_neox.final_layer_norm"]
    for i in range(config["num_hidden_layers"]):
        layer = f"gpt_neox.layers.{i}"
        norms += [f"{layer}.input_layernorm", f"{layer}.post_attention_layernorm"]
        of_layer = {"mlp.dense_h_to_4h": (f, d), "mlp.dense_4h_to_h": (d, f)}
        of_layer |= {"attention.query_key_value": (3 * d, d), "attention.dense": (d, d)}
        for name, shape in of_layer.items():
            shapes[f"{layer}.{name}.weight"] = shape
            if config.get("attention_bias", True) or name.startswith("mlp"):
                shapes[f"{layer}.{name}.bias"] = shape[:1]
    for name in norms:
        shapes |= {f"{name}.weight": (d,), f"{name}.bias": (d,)}
    return random_tensors(shapes, 0.5)


def llama_tensors(config: Mapping[str, Any], *, biased: tuple[str, ...] = (), head_norms: bool = False) -> Tensors:
    """`biased`: the letters or names in front of `_proj` of the matrices that have a bias."""
    d, f, v, k = (config[key] for key in ("hidden_size", "intermediate_size", "vocab_size", "head_dim"))
    inner, grouped = config["num_attention_heads"] * k, config["num_key_value_heads"] * k
    shapes = {"model.embed_tokens.weight": (v, d), "model.norm.weight": (d,)}
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (v, d)
    of_layer = {"self_attn.q": (inner, d), "self_attn.k": (grouped, d), "self_attn.v": (grouped, d)}
    of_layer |= {"self_attn.o": (d, inner), "mlp.gate": (f, d), "mlp.up": (f, d), "mlp.down": (d, f)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        shapes |= {f"{layer}.input_layernorm.weight": (d,), f"{layer}.post_attention_layernorm.weight": (d,)}
        shapes |= {f"{layer}.self_attn.{name}_norm.weight": (k,) for name in "qk" if head_norms}
        for name, shape in of_layer.items():
            shapes[f"{layer}.{name}_proj.weight"] = shape
            if name.partition(".")[2] in biased:
                shapes[f"{layer}.{name}_proj.bias"] = shape[:1]
    return random_tensors(shapes, 0.5)


def load(folder: Path, config: Mapping[str, Any], tensors: Tensors, dtype: str = "float64") -> Model:
    return Model.load(checkpoint(folder, config, tensors), device="cpu", dtype=dtype)


def logits(model: Model) -> np.ndarray:
    return model.trace(ids=IDS)["output.logits"]


def check(model: Model, wanted: np.ndarray) -> None:
    """The logits are those that plain NumPy gives."""
    np.testing.assert_allclose(logits(model), wanted, atol=1e-11)


def heads(x, width):
    return x.reshape(len(x), -1, width).transpose(1, 0, 2)


def attend(query, key, value, scale, window=None):
    """Of one query head to its key head; every query sees itself and what comes before it, `window` keys in all."""
    scores = query @ key.T * scale
    for i in range(len(scores)):
        scores[i, i + 1 :] = -np.inf
        scores[i, : max(i + 1 - (window or len(scores)), 0)] = -np.inf
    return softmax(scores) @ value


def frequencies(width, theta=10000.0):
    return 1.0 / theta ** (np.arange(0, width, 2) / width)


def turned(x, frequencies, factor=1.0):
    """(x cos + concat(−x₂, x₁) sin) times a factor over the first columns, as the published code has it."""
    angles = np.concatenate([np.outer(np.arange(x.shape[1]), frequencies)] * 2, axis=-1)
    width = angles.shape[1]
    turn, rest = x[..., :width], x[..., width:]
    swapped = np.concatenate([-turn[..., width // 2 :], turn[..., : width // 2]], axis=-1)
    return np.concatenate([factor * (turn * np.cos(angles) + swapped * np.sin(angles)), rest], axis=-1)


def gpt2_logits(config, tensors, scale=lambda layer, width: width**-0.5, activation=gelu_tanh):
    def conv(name, x):
        return x @ tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    width = config["n_embd"] // config["n_head"]
    x = tensors["wte.weight"][IDS] + tensors["wpe.weight"][: len(IDS)]
    for i in range(config["n_layer"]):
        parts = np.split(conv(f"h.{i}.attn.c_attn", layer_norm(tensors, f"h.{i}.ln_1", x)), 3, axis=1)
        query, key, value = (heads(part, width) for part in parts)
        mixed = [attend(*each, scale(i, width)) for each in zip(query, key, value, strict=True)]
        x = x + conv(f"h.{i}.attn.c_proj", np.concatenate(mixed, axis=1))
        x = x + conv(f"h.{i}.mlp.c_proj", activation(conv(f"h.{i}.mlp.c_fc", layer_norm(tensors, f"h.{i}.ln_2", x))))
    return layer_norm(tensors, "ln_f", x) @ tensors.get("lm_head.weight", tensors["wte.weight"]).T


def neox_logits(config, tensors, turns, *, parallel=True, activation=gelu):
    width = config["hidden_size"] // config["num_attention_heads"]
    x = tensors["gpt_neox.embed_in.weight"][IDS]
    for i in range(config["num_hidden_layers"]):
        layer = f"gpt_neox.layers.{i}"
        fused = linear(
            tensors, f"{layer}.attention.query_key_value", layer_norm(tensors, f"{layer}.input_layernorm", x)
        )
        query, key, value = np.split(heads(fused, 3 * width), 3, axis=-1)
        each = zip(turned(query, turns), turned(key, turns), value, strict=True)
        mixed = np.concatenate([attend(*head, width**-0.5) for head in each], axis=1)
        attended = x + linear(tensors, f"{layer}.attention.dense", mixed)
        states = layer_norm(tensors, f"{layer}.post_attention_layernorm", x if parallel else attended)
        hidden = activation(linear(tensors, f"{layer}.mlp.dense_h_to_4h", states))
        x = attended + linear(tensors, f"{layer}.mlp.dense_4h_to_h", hidden)
    head = "gpt_neox.embed_in" if config.get("tie_word_embeddings") else "embed_out"
    return layer_norm(tensors, "gpt_neox.final_layer_norm", x) @ tensors[f"{head}.weight"].T


def llama_logits(config, tensors, turns, windows=(None, None), factor=1.0):
    def norm(name, x):
        return rms_norm(x, tensors[f"{name}.weight"], config["rms_norm_eps"])

    def head_norm(name, x):
        return norm(name, x) if f"{name}.weight" in tensors else x

    width, share = config["head_dim"], config["num_attention_heads"] // config["num_key_value_heads"]
    x = tensors["model.embed_tokens.weight"][IDS]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        attention, mlp = f"{layer}.self_attn", f"{layer}.mlp"
        states = norm(f"{layer}.input_layernorm", x)
        query, key, value = (heads(linear(tensors, f"{attention}.{name}_proj", states), width) for name in "qkv")
        query = turned(head_norm(f"{attention}.q_norm", query), turns, factor)
        key = turned(head_norm(f"{attention}.k_norm", key), turns, factor)
        pairs = [(query[h], key[h // share], value[h // share]) for h in range(len(query))]
        mixed = [attend(*pair, width**-0.5, windows[i]) for pair in pairs]
        x = x + linear(tensors, f"{attention}.o_proj", np.concatenate(mixed, axis=1))
        states = norm(f"{layer}.post_attention_layernorm", x)
        gate = linear(tensors, f"{mlp}.gate_proj", states)
        active = silu(gate) * linear(tensors, f"{mlp}.up_proj", states)
        x = x + linear(tensors, f"{mlp}.down_proj", active)
    head = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
    return norm("model.norm", x) @ head.T
