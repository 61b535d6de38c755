"""Scaled dot-product attention and nothing else: Q, K and V are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Parameter
from tui_transformer.engine.program import Builder, Program
from tui_transformer.model.base_config import BaseConfig, fields_of
from tui_transformer.model.checks import size_up_to
from tui_transformer.model.description import Attention
from tui_transformer.model.layers import dot_product
from tui_transformer.model.sequence import Lengths, Sequence

LARGEST = 4096
SCOPE = "encoder.0.self_attention"
QUERY = ((1, 0.5, 0.1, 0.01), (0.2, 1.3, 0.2, 0.02), (1.2, 2.3, 3.2, 4.11))
KEY = ((0.8, 0.3, 0.3, 0.03), (0.1, 0.9, 0.4, 0.04), (0.2, 0.3, 3, 1.11))
VALUE = ((1.2, 0.7, 0.5, 0.05), (0.5, 0.4, 0.6, 0.06), (2.2, 1.3, 0, 3.11))


@dataclass(frozen=True)
class AttentionConfig(BaseConfig):
    """The shape of Q, K and V: length rows of width numbers, in one head."""

    model_type = "attention"
    checks = dict.fromkeys(("length", "width"), size_up_to(LARGEST))
    of_the_file = frozenset({"vocab_size", "pad_id"})

    length: int = 3
    width: int = 4
    causal: bool = True
    vocab_size: int = field(default=0, init=False)
    pad_id: int | None = field(default=None, init=False)

    @property
    def max_length(self) -> int:
        """Q, K and V have a fixed length."""
        return self.length

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        mask = "causal mask" if self.causal else "no mask"
        return f"scaled dot-product attention · {self.length} tokens · d_k {self.width} · {mask}"

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; keys that change no number are left alone."""
        return cls(**fields_of(cls, raw))

    def program(self, lengths: Lengths) -> Program:
        """Q, K, V → scores → weights → context (Vaswani et al. 2017, equation 1)."""
        del lengths
        build = Builder()
        head, tokens, width = Axis("head", 1), Axis("token", self.length, "tokens"), Axis("head width", self.width)
        places = build.given("input.places", tokens)
        visible = build.given("input.visible", tokens)
        build = build.within(SCOPE)
        query, key, value = (
            build(name, Parameter(), build.weight(f"{name}.weight", head, tokens, width))
            for name in ("query", "key", "value")
        )
        given = Sequence("", places, visible)
        dot_product(build, query, key, value, given, given, Attention(1, self.width, causal=self.causal))
        return build.program()


def example_weights() -> dict[str, Host]:
    """Q, K and V of the worked example that tutorials use."""
    tables = {"query": QUERY, "key": KEY, "value": VALUE}
    return {f"{SCOPE}.{name}.weight": np.array([table], dtype=np.float64) for name, table in tables.items()}
