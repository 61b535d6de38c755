"""Gemma 3 (Gemma Team 2025), the text model: normalised heads, five layers with a window to each without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import Attention
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.gemma import less_one
from tui_transformer.model.families.gemma2 import WEIGHTS as GEMMA2_WEIGHTS
from tui_transformer.model.families.gemma2 import Gemma2Config
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.layer_ropes import LayerRopes, read_layer_ropes
from tui_transformer.model.families.llama import LAYER, GroupedConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.families.settings import a_size, optional
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class Gemma3Config(Gemma2Config):
    """The keys of Gemma 3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gemma3_text"
    title: ClassVar[str] = "Gemma 3"
    fixed: ClassVar[Mapping[str, Any]] = {**GroupedConfig.fixed, "attn_logit_softcapping": None}
    checks: ClassVar[Mapping[str, Check]] = {
        **Gemma2Config.checks,
        "sliding_window_pattern": a_size,
        "use_bidirectional_attention": optional(truth),
    }

    vocab_size: int = 262208
    max_position_embeddings: int = 131072
    final_logit_softcapping: float | None = None
    attn_logit_softcapping: float | None = None
    sliding_window_pattern: int = 6
    use_bidirectional_attention: bool | None = False
    rope_parameters: Rope | LayerRopes = field(default_factory=LayerRopes)

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> LayerRopes:
        """θ of layers with a window is `rope_local_base_freq` in old files."""
        return read_layer_ropes(raw, 1e6, 1e4, "rope_local_base_freq", cls.max_position_embeddings)

    def usual_kind(self, layer: int) -> str:
        """No window in every sixth layer, or as `sliding_window_pattern` says (Gemma Team 2025, §2)."""
        return SLIDING if (layer + 1) % self.sliding_window_pattern else FULL

    @property
    def window(self) -> int | None:
        """How many keys a query of a layer with a window sees; where it sees later ones too, half on either side."""
        window = self.sliding_window
        return window // 2 + 1 if window and self.use_bidirectional_attention else window

    def attention(self) -> Attention:
        """With an RMS norm over the width of every query and key head; later keys are seen where asked for."""
        causal = not self.use_bidirectional_attention
        return replace(super().attention(), head_norm=self.final_norm(), causal=causal)


WEIGHTS = WeightTable(
    {
        **GEMMA2_WEIGHTS.parts,
        "decoder.{}.self_attention.query_norm": less_one(f"{LAYER}.self_attn.q_norm"),
        "decoder.{}.self_attention.key_norm": less_one(f"{LAYER}.self_attn.k_norm"),
    },
    prefix="model.",
)
GEMMA3_TEXT = decoder_family(Gemma3Config, WEIGHTS)
