"""Nemotron (Parmar et al. 2024): layer norms whose files hold γ − 1, no gate, half of every head turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import LAYER, PARTS, LlamaConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import Part, WeightTable

TURNED = 0.5
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class NemotronConfig(LlamaConfig):
    """The keys of Nemotron's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "nemotron"
    title: ClassVar[str] = "Nemotron"
    gated: ClassVar[bool] = False
    norm_kind: ClassVar[str] = "layer"
    turned_in_part: ClassVar[bool] = True
    whole: ClassVar[float] = TURNED
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_eps"}

    vocab_size: int = 256000
    hidden_size: int = 6144
    intermediate_size: int = 24576
    num_attention_heads: int = 48
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))


def _norm(ours: str, stored: str) -> Mapping[str, str | Part]:
    """γ − 1 and β."""
    return {f"{ours}.weight": Part(stored, plus=1.0), f"{ours}.bias": stored}


_NORMS = {
    "decoder.{}.self_attention.norm": f"{LAYER}.input_layernorm",
    "decoder.{}.feed_forward.norm": f"{LAYER}.post_attention_layernorm",
    "decoder.norm": "model.norm",
}
WEIGHTS = WeightTable(
    {
        **{step: part for step, part in PARTS.items() if step not in _NORMS},
        **{name: part for step, stored in _NORMS.items() for name, part in _norm(step, stored).items()},
    },
    prefix="model.",
)
NEMOTRON = decoder_family(NemotronConfig, WEIGHTS)
