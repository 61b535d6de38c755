"""GPT-NeoX (Black et al. 2022), of which Pythia (Biderman et al. 2023) is one, in its published checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.description import ATTENTION_MATRICES, FEED_FORWARD_MATRICES, FeedForward, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import GroupedConfig
from tui_transformer.model.families.rope import Rope, read_rope
from tui_transformer.model.weight_table import Part, WeightTable, of_every_group

TURNED = 0.25
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class NeoxConfig(GroupedConfig):
    """The keys of GPT-NeoX's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt_neox"
    title: ClassVar[str] = "GPT-NeoX"
    turned_in_part: ClassVar[bool] = True
    whole: ClassVar[float] = TURNED
    gated: ClassVar[bool] = False
    norm_kind: ClassVar[str] = "layer"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    of_the_file: ClassVar[frozenset[str]] = GroupedConfig.of_the_file | {"num_key_value_heads", "head_dim"}
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        **dict.fromkeys(("use_parallel_residual", "attention_bias"), truth),
    }

    vocab_size: int = 50432
    hidden_size: int = 6144
    intermediate_size: int = 24576
    num_hidden_layers: int = 44
    num_attention_heads: int = 64
    hidden_act: str = "gelu"
    rms_norm_eps: float = 1e-5
    use_parallel_residual: bool = True
    attention_bias: bool = True
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        config = super().from_json(raw)
        if raw.get("head_dim", config.head_width) != config.head_width:
            raise UsageError(
                f"head_dim {shown(raw['head_dim'])} is not hidden_size ÷ num_attention_heads, {config.head_width}: "
                "not supported"
            )
        return config

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope:
        """Rotary positions under the names that they have here."""
        if "rotary_pct" in raw and raw["rotary_pct"] is None:
            raise UsageError("rotary_pct is null, which is no number: leave it out for the default")
        return read_rope(raw, theta=("rotary_emb_base",), partial=("rotary_pct",), whole=TURNED)

    def feed_forward(self) -> FeedForward:
        """With every bias."""
        return replace(super().feed_forward(), bias=FEED_FORWARD_MATRICES)

    def layer(self) -> Layer:
        """Sublayers run side by side (Black et al. 2022, §2.1)."""
        return replace(super().layer(), parallel="two norms" if self.use_parallel_residual else "")


def fused(place: int) -> Part:
    """Query (0), key (1) or value (2), whose rows are q, k, v of head 0, then of head 1, and on."""
    take = of_every_group(place, 1, lambda config: config.num_attention_heads, lambda _: 3)
    return Part("gpt_neox.layers.{}.attention.query_key_value", take)


LAYER = "gpt_neox.layers.{}"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": "gpt_neox.embed_in",
        "decoder.{}.self_attention.norm": f"{LAYER}.input_layernorm",
        "decoder.{}.self_attention.query": fused(0),
        "decoder.{}.self_attention.key": fused(1),
        "decoder.{}.self_attention.value": fused(2),
        "decoder.{}.self_attention.output": f"{LAYER}.attention.dense",
        "decoder.{}.feed_forward.norm": f"{LAYER}.post_attention_layernorm",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.dense_h_to_4h",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.dense_4h_to_h",
        "decoder.norm": "gpt_neox.final_layer_norm",
        "output.logits": "embed_out",
    },
    prefix="gpt_neox.",
)
GPT_NEOX = decoder_family(NeoxConfig, WEIGHTS)
