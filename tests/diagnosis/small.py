"""Small transformers in plain NumPy, as a reader of a tutorial writes them, with a switch for every classic mistake.

They share no code with the program: only the weights are read from its models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tui_transformer.model import Model

Arrays = dict[str, np.ndarray]
ERF = np.vectorize(math.erf)


@dataclass
class Small:
    """A model in NumPy.

    `faults` are the mistakes that are made, `kept` all that was computed, by the name of the step.
    """

    weights: Mapping[str, np.ndarray]
    config: Any
    faults: frozenset[str]
    heads: int
    kv_heads: int
    epsilon: float
    dtype: Any = np.float64
    kept: Arrays = field(default_factory=dict)

    def has(self, fault: str) -> bool:
        return fault in self.faults

    def w(self, name: str) -> np.ndarray:
        if self.has("layer-repeated"):
            name = re.sub(r"^(encoder|decoder)\.\d+\.", r"\1.0.", name)
        if self.has("weight-exchanged"):
            name = re.sub(r"\b(key|value)\.", lambda at: "value." if at[1] == "key" else "key.", name)
        return self.weights[name].astype(self.dtype)

    def keep(self, name: str, value: np.ndarray) -> np.ndarray:
        self.kept[name] = value
        return value

    # Pieces

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        weight = self.w(f"{name}.weight")
        if self.has("weight-transposed") and name.endswith(".query"):
            weight = weight.T.reshape(weight.shape)
        y = x @ weight
        if f"{name}.bias" in self.weights and not self.has("bias-missing"):
            y = y + self.w(f"{name}.bias") * (2 if self.has("bias-twice") else 1)
        return y

    def split(self, y: np.ndarray, heads: int) -> np.ndarray:
        n, width = y.shape
        if self.has("heads-order"):
            return y.reshape(heads, n, width // heads)
        if self.has("heads-dealt"):
            return y.reshape(n, width // heads, heads).transpose(2, 0, 1)
        return y.reshape(n, heads, width // heads).transpose(1, 0, 2)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        epsilon = self.epsilon
        if self.has("norm-epsilon"):
            epsilon = 1e-3 if epsilon < 1e-4 else 1e-6
        if f"{name}.bias" in self.weights:
            axis = -2 if self.has("norm-axis") else -1
            mean = x.mean(axis, keepdims=True)
            variance = x.var(axis, keepdims=True, ddof=1 if self.has("norm-variance") else 0)
            y = (x - mean) / np.sqrt(variance + epsilon)
            if self.has("norm-exchanged"):
                return y * self.w(f"{name}.bias") + self.w(f"{name}.weight")
            if not self.has("norm-gamma-missing"):
                y = y * self.w(f"{name}.weight")
            return y if self.has("norm-beta-missing") else y + self.w(f"{name}.bias")
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
        return y if self.has("norm-gamma-missing") else y * self.w(f"{name}.weight")

    def softmax(self, s: np.ndarray) -> np.ndarray:
        axis = -2 if self.has("softmax-axis") else -3 if self.has("softmax-heads") else -1
        s = np.where(np.isneginf(s), -1e9, s) if axis == -3 else s
        top = s.max(axis, keepdims=True)
        e = np.exp(s - np.where(np.isfinite(top), top, 0))
        return e / e.sum(axis, keepdims=True)

    def mask(self, s: np.ndarray, causal: bool, visible: np.ndarray) -> np.ndarray:
        n = s.shape[-1]
        hide = np.broadcast_to(~visible[None, :], (n, n)).copy()
        if causal:
            ahead = 0 if self.has("mask-on-itself") else 2 if self.has("mask-shifted") else 1
            hide |= np.triu(np.ones((n, n), bool), ahead)
        if self.has("mask-missing"):
            return s
        if self.has("mask-flipped"):
            hide = np.tril(np.ones((n, n), bool), -1)
        if self.has("mask-finite"):
            return s + np.where(hide, -10.0, 0.0)
        return np.where(hide, -1e9 if self.has("mask-on-itself") else -np.inf, s)

    def rotate(self, x: np.ndarray, theta: float) -> np.ndarray:
        n, d = x.shape[-2:]
        theta = theta * 50 if self.has("rotary-theta") else theta
        start = 1 if self.has("position-off-by-one") else 0
        angles = (np.arange(n) + start)[:, None] / theta ** (2 * np.arange(d // 2) / d)
        cos, sin = np.cos(angles).astype(self.dtype), np.sin(angles).astype(self.dtype)
        if self.has("rotary-interleaved"):
            even, odd = x[..., 0::2], x[..., 1::2]
            y = np.empty_like(x)
            y[..., 0::2], y[..., 1::2] = even * cos - odd * sin, odd * cos + even * sin
            return y
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x: np.ndarray, at: str, causal: bool, visible: np.ndarray, theta: float | None) -> np.ndarray:
        keep = lambda name, value: self.keep(f"{at}.{name}", value)  # noqa: E731
        q = keep("query", self.split(self.linear(x, f"{at}.query"), self.heads))
        k = keep("key", self.split(self.linear(x, f"{at}.key"), self.kv_heads))
        v = keep("value", self.split(self.linear(x, f"{at}.value"), self.kv_heads))
        if self.has("heads-read"):  # the matrices are printed side by side, and split afterwards
            q, k, v = (a.transpose(1, 0, 2).reshape(a.shape) for a in (q, k, v))
        if theta is not None:
            q, k = keep("query_rotated", self.rotate(q, theta)), keep("key_rotated", self.rotate(k, theta))
        share, width = self.heads // self.kv_heads, q.shape[-1]
        if share > 1:
            spread = (
                (lambda a: np.tile(a, (share, 1, 1))) if self.has("keys-tiled") else (lambda a: np.repeat(a, share, 0))
            )
            k, v = spread(k), spread(v)
        s = keep("scores", k @ q.transpose(0, 2, 1) if self.has("scores-transposed") else q @ k.transpose(0, 2, 1))
        factor = 1 / math.sqrt(width)
        if self.has("scale-missing"):
            factor = 1.0
        if self.has("scale-d_model"):
            factor = 1 / math.sqrt(x.shape[-1])
        if self.has("scale-d_k"):
            factor = 1 / width
        if self.has("mask-before-scale"):
            n = s.shape[-1]
            hide = np.triu(np.ones((n, n), bool), 1) & causal | ~visible[None, :]
            s = keep("scaled", s * factor)
            s = keep("masked", s + np.where(hide, -10.0, 0) * factor)
        else:
            s = keep("scaled", s * factor)
            s = keep("masked", self.mask(s, causal, visible))
        a = keep("weights", self.softmax(s))
        if self.has("dropout-on"):
            drop = np.random.default_rng(3).random(a.shape) < 0.1
            a = keep("weights", np.where(drop, 0, a / 0.9))
        c = keep("context", (a.transpose(0, 2, 1) if self.has("attention-transposed") else a) @ v)
        if self.has("heads-order"):
            joined = c.reshape(x.shape[0], -1)
        elif self.has("heads-dealt"):
            joined = c.transpose(1, 2, 0).reshape(x.shape[0], -1)
        else:
            joined = c.transpose(1, 0, 2).reshape(x.shape[0], -1)
        keep("concat", joined)
        return keep("output", joined if self.has("projection-missing") else self.linear(joined, f"{at}.output"))

    def activation(self, x: np.ndarray, kind: str) -> np.ndarray:
        if self.has("activation"):
            kind = "silu" if kind == "relu" else "relu"
        if self.has("gelu-tanh") and kind == "gelu":
            kind = "gelu_tanh"
        elif self.has("gelu-erf") and kind == "gelu_tanh":
            kind = "gelu"
        return {
            "relu": lambda: np.maximum(x, 0),
            "silu": lambda: x / (1 + np.exp(-x)),
            "gelu": lambda: 0.5 * x * (1 + ERF(x / math.sqrt(2))),
            "gelu_tanh": lambda: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        }[kind]()

    def feed_forward(self, x: np.ndarray, at: str, kind: str) -> np.ndarray:
        hidden = self.keep(f"{at}.hidden", self.linear(x, f"{at}.hidden"))
        if f"{at}.gate.weight" in self.weights:
            gate = self.keep(f"{at}.gate", self.linear(x, f"{at}.gate"))
            gate, hidden = (hidden, gate) if self.has("gate-swapped") else (gate, hidden)
            active = self.keep(f"{at}.activation", self.activation(gate, kind))
            active = self.keep(f"{at}.gated", active * hidden)
        else:
            active = self.keep(f"{at}.activation", self.activation(hidden, kind))
        out = self.linear(active, f"{at}.output")
        return self.keep(f"{at}.output", self.activation(out, kind) if self.has("activation-last") else out)

    def sublayer(self, x: np.ndarray, at: str, place: str, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        if self.has("norm-place"):
            place = "pre" if place == "post" else "post"
        if place == "pre":
            normed = self.keep(f"{at}.norm", self.norm(x, f"{at}.norm"))
            y = f(normed)
            source = normed if self.has("residual-place") else x
        else:
            y = f(x)
            source = self.entrance if self.has("residual-place") else x
        residual = self.keep(f"{at}.residual", y if self.has("residual-missing") else source + y)
        return residual if place == "pre" else self.keep(f"{at}.norm", self.norm(residual, f"{at}.norm"))


def sines(n: int, d: int, faults: frozenset[str]) -> np.ndarray:
    pe = np.zeros((n, d))
    start = 1 if "position-off-by-one" in faults else 0
    for pos in range(n):
        for j in range(d):
            i = j // 2 if "position-halves" not in faults else j % (d // 2)
            exponent = 2 * j / d if "position-exponent" in faults else 2 * i / d
            angle = (pos + start) / (1000 if "position-base" in faults else 10000) ** exponent
            cosine = j % 2 if "position-halves" not in faults else j >= d // 2
            pe[pos, j] = math.cos(angle) if cosine else math.sin(angle)
    return pe


def weights_of(model: Model) -> Arrays:
    program = model.program(1)
    return {name: np.array(model.weights.get(name, program.shape(name))) for name in program.weights}


def encoder(model: Model, ids: list[int], faults: frozenset[str] = frozenset(), dtype: Any = np.float64) -> Arrays:
    """The encoder (or decoder) of the tutorials: `vanilla` models."""
    c = model.config
    net = Small(weights_of(model), c, faults, c.heads, c.heads, c.norm_epsilon, dtype)
    scaled = c.scale_embedding != ("embedding-unscaled" in faults or "embedding-scaled" in faults)
    x = net.w("embedding.tokens.weight")[ids] * (math.sqrt(c.d_model) if scaled else 1.0)
    x = net.keep("embedding.tokens", x)
    if c.positions != "none" and "position-missing" not in faults:
        if c.positions == "sinusoidal":
            p = sines(len(ids), c.d_model, faults).astype(dtype)
        else:
            p = net.w("embedding.positions.weight")[np.arange(len(ids)) + (1 if "position-off-by-one" in faults else 0)]
        x = x + net.keep("embedding.positions", p)
    x = net.keep("embedding.output", x)
    visible = _visible(ids, c.pad_id)
    for i in range(c.layers):
        at = f"{c.stack}.{i}"
        net.entrance = x
        x = net.sublayer(
            x,
            f"{at}.self_attention",
            c.norm,
            lambda y, at=at: net.attention(y, f"{at}.self_attention", c.masks_future, visible, None),
        )
        x = net.sublayer(
            x, f"{at}.feed_forward", c.norm, lambda y, at=at: net.feed_forward(y, f"{at}.feed_forward", c.activation)
        )
        net.keep(f"{at}.output", x)
    if c.norm == "pre":
        x = net.keep(f"{c.stack}.norm", net.norm(x, f"{c.stack}.norm"))
    table = (
        net.w("embedding.tokens.weight").T
        if "output.logits.weight" not in net.weights
        else net.w("output.logits.weight")
    )
    logits = x @ table
    if "output.logits.bias" in net.weights:
        logits = logits + net.w("output.logits.bias")
    net.keep("output.logits", logits)
    return net.kept


def _visible(ids: list[int], pad_id: int | None) -> np.ndarray:
    visible = np.ones(len(ids), bool)
    for i in reversed(range(len(ids))):
        if ids[i] != pad_id:
            break
        visible[i] = False
    return visible


def llama(model: Model, ids: list[int], faults: frozenset[str] = frozenset(), dtype: Any = np.float64) -> Arrays:
    """A decoder with rotary positions, grouped keys, RMS norms and a gate: Llama's published layout."""
    c = model.config
    net = Small(weights_of(model), c, faults, c.num_attention_heads, c.kv_heads, c.rms_norm_eps, dtype)
    theta = c.rope_parameters.rope_theta
    x = net.keep("embedding.tokens", net.w("embedding.tokens.weight")[ids])
    visible = np.ones(len(ids), bool)
    for i in range(c.num_hidden_layers):
        at = f"decoder.{i}"
        net.entrance = x
        x = net.sublayer(
            x,
            f"{at}.self_attention",
            "pre",
            lambda y, at=at: net.attention(y, f"{at}.self_attention", True, visible, theta),
        )
        x = net.sublayer(
            x, f"{at}.feed_forward", "pre", lambda y, at=at: net.feed_forward(y, f"{at}.feed_forward", "silu")
        )
        net.keep(f"{at}.output", x)
    x = net.keep("decoder.norm", net.norm(x, "decoder.norm"))
    table = (
        net.w("embedding.tokens.weight").T
        if "output.logits.weight" not in net.weights
        else net.w("output.logits.weight")
    )
    net.keep("output.logits", x @ table)
    return net.kept
