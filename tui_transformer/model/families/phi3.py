"""Phi-3 (Abdin et al. 2024), of which Phi-4 is one: Llama whose files hold query, key and value in one matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.families.settings import a_size, optional
from tui_transformer.model.weight_table import Part, WeightTable, cut


@dataclass(frozen=True)
class Phi3Config(GroupedConfig):
    """The keys of Phi-3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "phi3"
    title: ClassVar[str] = "Phi-3"
    turned_in_part: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        "original_max_position_embeddings": a_size,
        "sliding_window": optional(a_size),
    }

    vocab_size: int = 32064
    pad_token_id: int | None = 32000
    hidden_size: int = 3072
    intermediate_size: int = 8192
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    original_max_position_embeddings: int = 4096
    sliding_window: int | None = None

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """`su` and `yarn` of old files are `longrope`; the old context is a setting of the model."""
        given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
        kind = given.get("rope_type", given.get("type", "default")) if isinstance(given, Mapping) else "default"
        if kind not in ("default", "longrope", "su", "yarn"):
            raise UsageError(f"rope_type {shown(kind)} is not known in {cls.model_type} models: use default, longrope")
        old = {"original_max_position_embeddings": cls.original_max_position_embeddings}
        if kind in ("su", "yarn"):
            return super().read_rope({**old, **raw, "rope_scaling": {**given, "rope_type": "longrope"}})
        return super().read_rope({**old, **raw})

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The same window in every layer."""
        return (self.sliding_window,) * self.num_hidden_layers

    @property
    def projected(self) -> tuple[int, int, int]:
        """Rows of query, key and value in the matrix that holds all three."""
        keys = self.kv_heads * self.head_width
        return self.num_attention_heads * self.head_width, keys, keys


def projected(place: int) -> Part:
    """Query (0), key (1) or value (2)."""
    return Part(f"{LAYER}.self_attn.qkv_proj", cut(place, lambda config: config.projected))


def gated(place: int) -> Part:
    """The gate (0) or what it gates (1)."""
    return Part(f"{LAYER}.mlp.gate_up_proj", cut(place, lambda config: (config.intermediate_size,) * 2))


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query": projected(0),
        "decoder.{}.self_attention.key": projected(1),
        "decoder.{}.self_attention.value": projected(2),
        "decoder.{}.feed_forward.gate": gated(0),
        "decoder.{}.feed_forward.hidden": gated(1),
    },
    prefix="model.",
)
PHI3 = decoder_family(Phi3Config, WEIGHTS)
