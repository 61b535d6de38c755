"""GPT-2 (Radford et al. 2019) in its published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.model.checks import Check, size_up_to, small, truth
from tui_transformer.model.config import MOST_LAYERS
from tui_transformer.model.embedding import Embedding
from tui_transformer.model.families.base import Family, Lengths, Stored, as_it_is, transposed
from tui_transformer.model.families.decoder_only import (
    DecoderConfig,
    TensorNames,
    a_size,
    an_activation,
    check_divides,
    decoder_program,
    optional,
    sizes_line,
)
from tui_transformer.model.layers import ACTIVATION_NAMES, ALL_MATRICES, Layout, Norm


@dataclass(frozen=True)
class Gpt2Config(DecoderConfig):
    """The keys of GPT-2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt2"
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "add_cross_attention": False}
    other_names: ClassVar[Mapping[str, str]] = {
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_positions": "max_position_embeddings",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("n_positions", "n_embd", "n_head"), a_size),
        "n_layer": size_up_to(MOST_LAYERS),
        "n_inner": optional(a_size),
        "activation_function": an_activation,
        "layer_norm_epsilon": small,
        **dict.fromkeys(("scale_attn_weights", "scale_attn_by_inverse_layer_idx"), truth),
    }

    vocab_size: int = 50257
    tie_word_embeddings: bool = True
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("n_embd", self.n_embd, "n_head", self.n_head)

    @property
    def max_length(self) -> int:
        """Rows of the table of positions."""
        return self.n_positions

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        return sizes_line("GPT-2", layout_of(self), self.n_layer)


def layout_of(config: Gpt2Config) -> Layout:
    """What the layers need of the configuration."""
    return Layout(
        d_model=config.n_embd,
        heads=config.n_head,
        d_ff=config.n_inner or 4 * config.n_embd,
        norm=Norm(config.layer_norm_epsilon),
        place="pre",
        activation=ACTIVATION_NAMES[config.activation_function],
        head_width=config.n_embd // config.n_head,
        kv_heads=config.n_head,
        bias=ALL_MATRICES,
        scaled=config.scale_attn_weights,
    )


def program(config: Gpt2Config, lengths: Lengths) -> Program:
    """Token and learned position, pre-norm layers, a last norm, logits (Radford et al. 2019, §2.3)."""
    layout = layout_of(config)
    divisors = (i + 1.0 if config.scale_attn_by_inverse_layer_idx else 1.0 for i in range(config.n_layer))
    layouts = tuple(replace(layout, divisor=divisor) for divisor in divisors)
    embedding = Embedding(positions="learned", max_length=config.n_positions)
    return decoder_program(config, lengths, layouts, embedding)


def third(place: int, tensor: Host) -> Host:
    """Query (0), key (1) or value (2) of `c_attn`, whose columns hold them side by side."""
    return np.split(tensor, 3, axis=-1)[place]


NAMES = TensorNames(
    prefix="transformer.",
    layers="h",
    head="lm_head",
    outside={"embedding.tokens": "wte", "embedding.positions": "wpe", "decoder.norm": "ln_f"},
    inside={
        "self_attention.norm": "ln_1",
        **dict.fromkeys((f"self_attention.{name}" for name in ("query", "key", "value")), "attn.c_attn"),
        "self_attention.output": "attn.c_proj",
        "feed_forward.norm": "ln_2",
        "feed_forward.hidden": "mlp.c_fc",
        "feed_forward.output": "mlp.c_proj",
    },
)
TAKES: Mapping[str, Callable[[Host], Host]] = {
    "self_attention.query": partial(third, 0),
    "self_attention.key": partial(third, 1),
    "self_attention.value": partial(third, 2),
    "output.logits": transposed,
}
"""Matrices are stored in × out, as they are used; all but these are taken as they are."""


def stored(config: Gpt2Config, name: str, names: frozenset[str]) -> Stored:
    """Where a weight is in the file."""
    step, tensor = NAMES.place(config, name, names)
    return Stored(tensor, TAKES.get(step, as_it_is))


GPT2 = Family(Gpt2Config.model_type, Gpt2Config.from_json, program, stored, fitted=NAMES.fitted, copies=NAMES.copies)
