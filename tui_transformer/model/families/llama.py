"""Llama (Touvron et al. 2023) in its published checkpoints; the base of the families that differ in little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from tui_transformer.engine.program import Program
from tui_transformer.errors import UsageError
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
from tui_transformer.model.families.rope import Rope, read_rope
from tui_transformer.model.layers import ACTIVATION_NAMES, ATTENTION_MATRICES, FEED_FORWARD_MATRICES, Layout, Norm


@dataclass(frozen=True)
class GroupedConfig(DecoderConfig):
    """The keys that Llama's `config.json` shares with those of its relatives."""

    title: ClassVar[str]
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("hidden_size", "intermediate_size", "num_attention_heads"), a_size),
        **dict.fromkeys(("num_key_value_heads", "head_dim"), optional(a_size)),
        "max_position_embeddings": a_size,
        "num_hidden_layers": size_up_to(MOST_LAYERS),
        "hidden_act": an_activation,
        "rms_norm_eps": small,
    }

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_parameters: Rope = field(default_factory=Rope)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None:
            check_divides("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_divides("num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.kv_heads)
        if self.rope_parameters.partial_rotary_factor != 1.0:
            raise UsageError(f"partial_rotary_factor other than 1 is not supported in {self.model_type} models")
        self.rope_parameters.width(self.head_width)

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_width(self) -> int:
        """d_k."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def biased(self) -> frozenset[str]:
        """The matrices that have a bias."""
        return frozenset()

    @property
    def head_norm(self) -> Norm | None:
        """The norm of every query and key head, where there is one."""
        return None

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many keys a query sees in each layer; None for all."""
        return (None,) * self.num_hidden_layers

    @property
    def max_length(self) -> int:
        """The tokens that the model was made for."""
        return self.max_position_embeddings

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        return sizes_line(self.title, layout_of(self), self.num_hidden_layers)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json({**raw, "rope_parameters": read_rope(raw)})


@dataclass(frozen=True)
class LlamaConfig(GroupedConfig):
    """The keys of Llama's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "llama"
    title: ClassVar[str] = "Llama"
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        **dict.fromkeys(("attention_bias", "mlp_bias"), truth),
    }

    attention_bias: bool = False
    mlp_bias: bool = False

    @property
    def biased(self) -> frozenset[str]:
        """The matrices that have a bias."""
        attention = ATTENTION_MATRICES if self.attention_bias else frozenset()
        return attention | (FEED_FORWARD_MATRICES | {"gate"} if self.mlp_bias else frozenset())


def layout_of(config: GroupedConfig) -> Layout:
    """What the layers need of the configuration."""
    return Layout(
        d_model=config.hidden_size,
        heads=config.num_attention_heads,
        d_ff=config.intermediate_size,
        norm=Norm(config.rms_norm_eps, "rms"),
        place="pre",
        activation=ACTIVATION_NAMES[config.hidden_act],
        head_width=config.head_width,
        kv_heads=config.kv_heads,
        bias=config.biased,
        gated=True,
        rotary=config.rope_parameters.rotary(config.head_width),
        head_norm=config.head_norm,
    )


def program(config: GroupedConfig, lengths: Lengths) -> Program:
    """Tokens, pre-norm layers with rotary positions and a gated feed-forward, a last norm, logits.

    Touvron et al. 2023, §2.2; grouped keys: Ainslie et al. 2023; windows: Jiang et al. 2023, §2.
    """
    layouts = tuple(replace(layout_of(config), window=window) for window in config.windows)
    return decoder_program(config, lengths, layouts, Embedding())


MATRICES = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.o_proj",
    "feed_forward.hidden": "mlp.up_proj",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.output": "mlp.down_proj",
}
NORMS = {
    "self_attention.norm": "input_layernorm",
    "self_attention.query_norm": "self_attn.q_norm",
    "self_attention.key_norm": "self_attn.k_norm",
    "feed_forward.norm": "post_attention_layernorm",
}
NAMES = TensorNames(
    prefix="model.",
    layers="layers",
    head="lm_head",
    outside={"embedding.tokens": "embed_tokens", "decoder.norm": "norm"},
    inside={**MATRICES, **NORMS},
)


def stored(config: GroupedConfig, name: str, names: frozenset[str]) -> Stored:
    """Where a weight is in the file."""
    step, tensor = NAMES.place(config, name, names)
    return Stored(tensor, transposed if step in MATRICES or step == "output.logits" else as_it_is)


LLAMA = Family(LlamaConfig.model_type, LlamaConfig.from_json, program, stored, fitted=NAMES.fitted, copies=NAMES.copies)
