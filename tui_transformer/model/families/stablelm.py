"""StableLM (Bellagente et al. 2024): Llama with layer norms, a quarter of each head turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import QUERY_KEY_VALUE, Attention, Layer, Norm
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import Part, WeightTable

TURNED = 0.25
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class StableLmConfig(GroupedConfig):
    """The keys of StableLM's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "stablelm"
    title: ClassVar[str] = "StableLM"
    turned_in_part: ClassVar[bool] = True
    whole: ClassVar[float] = TURNED
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"use_qkv_bias": QUERY_KEY_VALUE}
    norm_kind: ClassVar[str] = "layer"
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        **dict.fromkeys(("use_qkv_bias", "qk_layernorm", "use_parallel_residual"), truth),
    }

    vocab_size: int = 50304
    hidden_size: int = 2560
    intermediate_size: int = 6912
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))

    def attention(self) -> Attention:
        """With a layer norm of every query and key head by weights of its own, where the file has them."""
        head_norm = Norm(self.rms_norm_eps, shift=False) if self.qk_layernorm else None
        return replace(super().attention(), head_norm=head_norm, head_norms="own")

    def layer(self) -> Layer:
        """Attention and feed-forward read the same norm, where the file says so."""
        return replace(super().layer(), parallel="one norm" if self.use_parallel_residual else "")


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query_norm.{}": Part(f"{LAYER}.self_attn.q_layernorm.norms.{{}}", turned=False),
        "decoder.{}.self_attention.key_norm.{}": Part(f"{LAYER}.self_attn.k_layernorm.norms.{{}}", turned=False),
    },
    prefix="model.",
)
STABLELM = decoder_family(StableLmConfig, WEIGHTS)
