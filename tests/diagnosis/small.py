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
from plain_numpy import gelu, gelu_tanh, relu, silu

from tui_transformer.model import Model

Arrays = dict[str, np.ndarray]


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

    def made(self, mistakes: Mapping[str, Any], right: Any) -> Any:
        """What comes of the mistake that is made of some."""
        return next((value for fault, value in mistakes.items() if self.has(fault)), right)

    def w(self, name: str) -> np.ndarray:
        if self.has("layer-repeated"):
            name = re.sub(r"^(encoder|decoder)\.\d+\.", r"\1.0.", name)
        if self.has("norms-exchanged"):
            other = {"self_attention": "feed_forward", "feed_forward": "self_attention"}
            name = re.sub(r"(\w+)(?=\.norm\.)", lambda at: other.get(at[1], at[1]), name)
        if self.has("weight-exchanged"):
            name = re.sub(r"\b(key|value)\.", lambda at: "value." if at[1] == "key" else "key.", name)
        weight = self.weights[name].astype(self.dtype)
        return self.bits(weight) if self.has("weights-bfloat16") else weight

    def keep(self, name: str, value: np.ndarray) -> np.ndarray:
        if self.has("float16") and not name.endswith("output.logits"):
            with np.errstate(over="ignore"):
                value = value.astype(np.float16).astype(self.dtype)
        if self.has("bfloat16"):
            value = self.bits(value)
        self.kept[name] = value
        return value

    def bits(self, x: np.ndarray, dropped: int = 16) -> np.ndarray:
        """float32 with fewer bits."""
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + np.uint32(1 << (dropped - 1))) >> dropped << dropped).view(np.float32).astype(self.dtype)

    def times(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A product, in TF32 where that is on."""
        return self.bits(x, 13) @ self.bits(y, 13) if self.has("tf32") else x @ y

    # Pieces

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        weight = self.w(f"{name}.weight")
        if self.has("weight-transposed") and name.endswith(".query"):
            weight = weight.T.reshape(weight.shape)
        if self.has("sum-short"):
            x, weight = x[:, :-1], weight[:-1]
        y = self.times(x, weight)
        if f"{name}.bias" in self.weights and not self.has("bias-missing"):
            y = y + self.w(f"{name}.bias") * (2 if self.has("bias-twice") else 1)
        return y

    def split(self, y: np.ndarray, heads: int) -> np.ndarray:
        n, width = y.shape
        dealt = y.reshape(n, width // heads, heads).transpose(2, 0, 1)
        mistakes = {"heads-order": y.reshape(heads, n, width // heads), "heads-dealt": dealt}
        return self.made(mistakes, y.reshape(n, heads, width // heads).transpose(1, 0, 2))

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        epsilon = self.epsilon
        if self.has("norm-missing"):
            return x
        if self.has("norm-epsilon"):
            epsilon = 1e-3 if epsilon < 1e-4 else 1e-6
        if f"{name}.bias" in self.weights:
            axis: Any = -2 if self.has("norm-axis") else None if self.has("norm-whole") else -1
            mean = 0 if self.has("norm-kind") else x.mean(axis, keepdims=True)
            variance = x.var(axis, keepdims=True, ddof=1 if self.has("norm-variance") else 0)
            if self.has("norm-sum"):
                variance = variance * x.shape[-1]
            if self.has("norm-kind"):
                variance = (x * x).mean(-1, keepdims=True)
            y = (x - mean) / np.sqrt(variance + epsilon)
            if self.has("norm-variance-divided"):
                y = (x - mean) / (variance + epsilon)
            if self.has("norm-division-missing"):
                y = x - mean
            if self.has("norm-exchanged"):
                return y * self.w(f"{name}.bias") + self.w(f"{name}.weight")
            if not self.has("norm-gamma-missing"):
                y = y * self.w(f"{name}.weight")
            return y if self.has("norm-beta-missing") else y + self.w(f"{name}.bias")
        x = x - x.mean(-1, keepdims=True) if self.has("norm-kind") else x
        squares = x * x
        size = squares.sum(-1, keepdims=True) if self.has("norm-sum") else squares.mean(-1, keepdims=True)
        y = x / (size + epsilon if self.has("norm-variance-divided") else np.sqrt(size + epsilon))
        if self.has("norm-gamma-missing"):
            return y
        return y * (self.w(f"{name}.weight") + (1 if self.has("norm-gamma-offset") else 0))

    @np.errstate(all="ignore")
    def softmax(self, s: np.ndarray) -> np.ndarray:
        axis: Any = -2 if self.has("softmax-axis") else -3 if self.has("softmax-heads") else -1
        axis = self.made({"softmax-matrix": (-2, -1), "softmax-all-heads": (-3, -2, -1)}, axis)
        s = np.where(np.isneginf(s), -1e9, s) if axis == -3 else s
        if self.has("softmax-overflow") or self.has("softmax-sum-missing"):
            e = np.exp(s)
            return e if self.has("softmax-sum-missing") else e / e.sum(-1, keepdims=True)
        if self.has("softmax-missing"):
            return s
        if self.has("softmax-exponential-missing"):
            s = np.where(np.isneginf(s), 0, s)
            return s / s.sum(-1, keepdims=True)
        if self.has("softmax-base"):
            s = s * np.log(2.0).astype(self.dtype)
        if self.has("softmax-rescale-missing"):
            running = np.maximum.accumulate(s, -1)
            running = running[..., [min(j // 2 * 2 + 2, s.shape[-1]) - 1 for j in range(s.shape[-1])]]
            e = np.exp(s - running)
            return e / e.sum(-1, keepdims=True)
        top = s.max(axis, keepdims=True)
        e = np.exp(s - np.where(np.isfinite(top), top, 0))
        return e / e.sum(axis, keepdims=True)

    def mask(self, s: np.ndarray, causal: bool, visible: np.ndarray) -> np.ndarray:
        n = s.shape[-1]
        hide = np.broadcast_to(~visible[None, :], (n, n)).copy()
        if causal:
            strict = self.has("mask-on-itself") or self.has("mask-strict") or self.has("mask-added-strict")
            ahead = 0 if strict else 2 if self.has("mask-shifted") else 1
            hide |= np.triu(np.ones((n, n), bool), ahead)
        if self.has("mask-missing") or self.has("mask-after-softmax"):
            return s
        if self.has("mask-zero"):
            return np.where(hide, 0.0, s).astype(self.dtype)
        if self.has("mask-flipped"):
            hide = np.tril(np.ones((n, n), bool), -1)
        if self.has("mask-finite") or self.has("mask-added-strict"):
            return s + np.where(hide, -10.0 if self.has("mask-finite") else -1e9, 0.0)
        return np.where(hide, -1e9 if self.has("mask-on-itself") else -np.inf, s)

    def rotate(self, x: np.ndarray, theta: float) -> np.ndarray:
        n, d = x.shape[-2:]
        theta = theta * 50 if self.has("rotary-theta") else theta
        start = 1 if self.has("position-off-by-one") else -1 if self.has("position-before") else 0
        exponent = np.arange(d // 2) / d if self.has("rotary-exponent") else 2 * np.arange(d // 2) / d
        exponent = 2 * np.arange(d // 2) // d if self.has("rotary-integer") else exponent
        exponent = 2 * np.arange(d // 2) / (d * self.heads) if self.has("rotary-width") else exponent
        places = np.arange(len(x))[:, None] if self.has("rotary-axis") else np.arange(n) + start
        angles = places[..., None] / theta**exponent
        cos, sin = np.cos(angles).astype(self.dtype), np.sin(angles).astype(self.dtype)
        if self.has("rotary-missing"):
            return x
        if self.has("rotary-swapped"):
            cos, sin = sin, cos
        if self.has("rotary-direction"):
            sin = -sin
        if self.has("rotary-interleaved"):
            even, odd = x[..., 0::2], x[..., 1::2]
            y = np.empty_like(x)
            y[..., 0::2], y[..., 1::2] = even * cos - odd * sin, odd * cos + even * sin
            return y
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([a * cos - b * sin * (-1 if self.has("rotary-sign") else 1), b * cos + a * sin], -1)

    def slipped(self, x: np.ndarray, part: str) -> np.ndarray:
        """What is read of heads × tokens × d_k by wrong indices."""
        h, n, w = x.shape
        side = np.ascontiguousarray(x.transpose(1, 0, 2)).reshape(-1)
        head, token, column = np.ogrid[:h, :n, :w]
        read = {
            f"{part}-d-by-n": side[(head * w + column) * n + token],  # n × d, as d × n
            f"{part}-head-d-by-n": np.ascontiguousarray(x).reshape(h, w, n).transpose(0, 2, 1),
            f"{part}-row": side[token * w + head * w + column],
            f"{part}-no-head": side[token * h * w + 0 * head + column],
            f"{part}-not-multiplied": side[token * h * w + head + column],
        }
        return self.made(read, x)

    def attention(self, x: np.ndarray, at: str, causal: bool, visible: np.ndarray, theta: float | None) -> np.ndarray:
        keep = lambda name, value: self.keep(f"{at}.{name}", value)  # noqa: E731
        q = keep("query", self.split(self.linear(x, f"{at}.query"), self.heads))
        k = keep("key", self.split(self.linear(x, f"{at}.key"), self.kv_heads))
        v = keep("value", self.split(self.linear(x, f"{at}.value"), self.kv_heads))
        if self.has("heads-read"):  # the matrices are printed side by side, and split afterwards
            q, k, v = (a.transpose(1, 0, 2).reshape(a.shape) for a in (q, k, v))
        if theta is not None:
            q, k = keep("query_rotated", self.rotate(q, theta)), keep("key_rotated", self.rotate(k, theta))
        if theta is not None and self.has("rotary-values"):
            v = self.rotate(v, theta)
        v = self.made({"value-is-key": k, "value-is-query": q}, v)
        q, k, v = (self.slipped(a, part) for a, part in ((q, "query"), (k, "key"), (v, "value")))
        share, width = self.heads // self.kv_heads, q.shape[-1]
        if share > 1:
            if self.has("keys-first"):
                k, v = k[:1].repeat(self.kv_heads, 0), v[:1].repeat(self.kv_heads, 0)
            k, v = (np.tile(a, (share, 1, 1)) if self.has("keys-tiled") else np.repeat(a, share, 0) for a in (k, v))
        if self.has("scores-transposed"):
            q, k = k, q
        columns = width - 1 if self.has("scores-short") else width
        s = keep("scores", self.times(q[..., :columns], k[..., :columns].transpose(0, 2, 1)))
        factors = {
            "scale-integer": 1 / int(math.sqrt(width)),
            "scale-size": 1 / math.sqrt(len(x)),
            "scale-multiplied": math.sqrt(width),
            "scale-missing": 1.0,
            "scale-d_model": 1 / math.sqrt(x.shape[-1]),
            "scale-d_k": 1 / width,
        }
        factor = self.made(factors, 1 / math.sqrt(width))
        if self.has("mask-before-scale"):
            n = s.shape[-1]
            hide = np.triu(np.ones((n, n), bool), 1) & causal | ~visible[None, :]
            s = keep("scaled", s * factor)
            s = keep("masked", s + np.where(hide, -10.0, 0) * factor)
        else:
            s = keep("scaled", s * factor)
            s = self.mask(s, causal, visible)
            s = s if self.has("mask-after-softmax") else keep("masked", s)
        a = keep("weights", self.softmax(s))
        if self.has("softmax-logarithm"):
            a = keep("weights", np.log(a))
        if self.has("mask-after-softmax"):
            a = keep("weights", np.where(np.triu(np.ones(a.shape[1:], bool), 1), 0, a))
        if self.has("dropout-on"):
            drop = np.random.default_rng(3).random(a.shape) < 0.1
            a = keep("weights", np.where(drop, 0, a / 0.9))
        if self.has("softmax-twice"):
            a = keep("weights", self.softmax(a))
        c = self.times(a.transpose(0, 2, 1) if self.has("attention-transposed") else a, v)
        if self.has("value-own-row"):
            c = a.sum(-1, keepdims=True) * v
        if self.has("context-short"):
            c = a[..., :-1] @ v[..., :-1, :]
        c = keep("context", c)
        joined = self.made({"heads-order": c, "heads-dealt": c.transpose(1, 2, 0)}, c.transpose(1, 0, 2))
        joined = joined.reshape(x.shape[0], -1)
        keep("concat", joined)
        return keep("output", joined if self.has("projection-missing") else self.linear(joined, f"{at}.output"))

    def activation(self, x: np.ndarray, kind: str) -> np.ndarray:
        if self.has("activation"):
            kind = "silu" if kind == "relu" else "relu"
        if self.has("gelu-tanh") and kind == "gelu":
            kind = "gelu_tanh"
        elif self.has("gelu-erf") and kind == "gelu_tanh":
            kind = "gelu"
        return {"relu": relu, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh}[kind](x).astype(x.dtype)

    def feed_forward(self, x: np.ndarray, at: str, kind: str) -> np.ndarray:
        hidden = self.keep(f"{at}.hidden", self.linear(x, f"{at}.hidden"))
        if f"{at}.gate.weight" in self.weights:
            gate = self.keep(f"{at}.gate", self.linear(x, f"{at}.gate"))
            gate, hidden = (hidden, gate) if self.has("gate-swapped") else (gate, hidden)
            active = self.keep(f"{at}.activation", self.activation(gate, kind))
            active = self.keep(f"{at}.gated", active if self.has("gate-missing") else active * hidden)
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
        source = 2 * source if self.has("residual-twice") else source
        y = 0 * y if self.has("sublayer-missing") and at.endswith("feed_forward") else y
        residual = self.keep(f"{at}.residual", y if self.has("residual-missing") else source + y)
        return residual if place == "pre" else self.keep(f"{at}.norm", self.norm(residual, f"{at}.norm"))

    def layer(self, x: np.ndarray, at: str, place: str, kind: str, **masked: Any) -> np.ndarray:
        self.entrance, inner = x, f"{at}.self_attention"
        x = self.sublayer(x, inner, place, lambda y: self.attention(y, inner, **masked))
        x = self.sublayer(x, f"{at}.feed_forward", place, lambda y: self.feed_forward(y, f"{at}.feed_forward", kind))
        return self.keep(f"{at}.output", x)

    def with_logits(self, x: np.ndarray) -> Arrays:
        tied = "output.logits.weight" not in self.weights
        logits = self.times(x, self.w("embedding.tokens.weight").T if tied else self.w("output.logits.weight"))
        if "output.logits.bias" in self.weights:
            logits = logits + self.w("output.logits.bias")
        by = self.made({"logits-d_model": x.shape[-1], "logits-d_k": x.shape[-1] // self.heads}, 1)
        self.keep("output.logits", logits / np.sqrt(np.asarray(by, self.dtype)))
        return self.kept


def weights_of(model: Model) -> Arrays:
    program = model.program(1)
    return {name: np.array(model.weights.get(name, program.shape(name))) for name in program.weights}


def sines(n: int, d: int, faults: frozenset[str]) -> np.ndarray:
    pe = np.zeros((n, d))
    start = 1 if "position-off-by-one" in faults else -1 if "position-before" in faults else 0
    for pos in range(n):
        for j in range(d):
            i = j // 2 if "position-halves" not in faults else j % (d // 2)
            exponent = 2 * j / d if "position-exponent" in faults else 2 * i / d
            exponent = 2 * i // d if "position-integer" in faults else exponent
            exponent = -exponent if "position-multiplied" in faults else exponent
            angle = (pos + start) / (1000 if "position-base" in faults else 10000) ** exponent
            cosine = j % 2 if "position-halves" not in faults else j >= d // 2
            cosine = not cosine if "position-swapped" in faults else cosine
            pe[pos, j] = math.cos(angle) if cosine else math.sin(angle)
    return pe * (2 if "position-twice" in faults else 1)


def read(ids: list[int], faults: frozenset[str], count: int) -> list[int]:
    """The rows of the table that are read."""
    mistakes = {
        "token-off-by-one": [min(i + 1, count - 1) for i in ids],
        "token-before": [max(i - 1, 0) for i in ids],
        "one-token": [*ids[:2], ids[2] + 1, *ids[3:]],
        "tokens-late": [0, *ids[:-1]],
        "tokens-early": [*ids[1:], ids[-1]],
        "tokens-rolled": [ids[-1], *ids[:-1]],
    }
    return next((read for fault, read in mistakes.items() if fault in faults), ids)


def encoder(model: Model, ids: list[int], faults: frozenset[str] = frozenset(), dtype: Any = np.float64) -> Arrays:
    """The encoder (or decoder) of the tutorials: `vanilla` models."""
    c = model.config
    net = Small(weights_of(model), c, faults, c.heads, c.heads, c.norm_epsilon, dtype)
    scaled = c.scale_embedding != ("embedding-unscaled" in faults or "embedding-scaled" in faults)
    table = net.w("embedding.tokens.weight")
    visible = np.arange(len(ids)) <= np.flatnonzero(np.array(ids) != c.pad_id).max(initial=-1)
    ids = read(ids, faults, len(table))
    table = table.T.reshape(table.shape) if "embedding-transposed" in faults else table
    late = "embedding-scaled-late" in faults
    x = table[ids] * np.asarray(math.sqrt(c.d_model) if scaled and not late else 1.0, dtype)
    x = net.keep("embedding.tokens", x)
    if c.positions != "none" and "position-missing" not in faults:
        if c.positions == "sinusoidal":
            p = sines(len(ids), c.d_model, faults).astype(dtype)
        else:
            p = net.w("embedding.positions.weight")[np.arange(len(ids)) + (1 if "position-off-by-one" in faults else 0)]
        x = x + net.keep("embedding.positions", p)
    x = net.keep("embedding.output", x * np.asarray(math.sqrt(c.d_model) if late else 1.0, dtype))
    for i in range(c.layers - (1 if "layer-missing" in faults else 0)):
        at = f"{c.stack}.{i}"
        x = net.layer(x, at, c.norm, c.activation, causal=c.masks_future, visible=visible, theta=None)
    if c.norm == "pre":
        x = net.keep(f"{c.stack}.norm", net.norm(x, f"{c.stack}.norm"))
    return net.with_logits(x)


def llama(model: Model, ids: list[int], faults: frozenset[str] = frozenset(), dtype: Any = np.float64) -> Arrays:
    """A decoder with rotary positions, grouped keys, RMS norms and a gate: Llama's published layout."""
    c = model.config
    net = Small(weights_of(model), c, faults, c.num_attention_heads, c.kv_heads, c.rms_norm_eps, dtype)
    theta = c.rope_parameters.rope_theta
    rows = net.w("embedding.tokens.weight")
    x = net.keep("embedding.tokens", rows[read(ids, faults, len(rows))])
    visible = np.ones(len(ids), bool)
    for i in range(c.num_hidden_layers - (1 if "layer-missing" in faults else 0)):
        x = net.layer(x, f"decoder.{i}", "pre", "silu", causal=True, visible=visible, theta=theta)
    x = net.keep("decoder.norm", net.norm(x, "decoder.norm"))
    return net.with_logits(x)
