"""Phi (Gunasekar et al. 2023; Javaheripi et al. 2023) and Phi-3 (Abdin et al. 2024), of which Phi-4 is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.description import ATTENTION_MATRICES, Head
from tui_transformer.model.families.decoder import ALWAYS, LAYER, PARTS, DecoderConfig
from tui_transformer.model.families.layer_kinds import LayerRopes
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import Part, WeightTable, cut


@dataclass(frozen=True)
class PhiConfig(DecoderConfig):
    """Phi: both sublayers read one norm, and every matrix has a bias."""

    model_type = "phi"
    title = "Phi"
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    turned_in_part = True
    whole = 0.5
    biases: ClassVar[Mapping[str, frozenset[str]]] = {ALWAYS: ATTENTION_MATRICES}
    feed_forward_bias = ALWAYS
    gated = False
    norm_kind = "layer"
    parallel = "one norm"
    head_norms = "alike"
    head_norms_where = "qk_layernorm"
    weights = WeightTable(
        {
            **PARTS,
            "decoder.{}.self_attention.query_norm": f"{LAYER}.self_attn.q_layernorm",
            "decoder.{}.self_attention.key_norm": f"{LAYER}.self_attn.k_layernorm",
            "decoder.{}.self_attention.output": f"{LAYER}.self_attn.dense",
            "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.fc1",
            "decoder.{}.feed_forward.output": f"{LAYER}.mlp.fc2",
            "decoder.norm": "model.final_layernorm",
        },
        prefix="model.",
    )

    vocab_size: int = 51200
    hidden_size: int = 2048
    intermediate_size: int | None = 8192
    num_hidden_layers: int = 24
    hidden_act: str = "gelu_new"
    rms_norm_eps: float = 1e-5
    qk_layernorm: bool = False

    def word_head(self) -> Head:
        """With a bias for every word."""
        return replace(super().word_head(), bias=True)


def projected(place: int) -> Part:
    """Query (0), key (1) or value (2), of a matrix that holds all three."""
    return Part(f"{LAYER}.self_attn.qkv_proj", cut(place, lambda config: config.projected))


def gated(place: int) -> Part:
    """The gate (0) or what it gates (1)."""
    return Part(f"{LAYER}.mlp.gate_up_proj", cut(place, lambda config: (config.intermediate_size,) * 2))


@dataclass(frozen=True)
class Phi3Config(DecoderConfig):
    """Phi-3: Llama whose files hold query, key and value in one matrix."""

    model_type = "phi3"
    title = "Phi-3"
    turned_in_part = True
    weights = WeightTable(
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

    vocab_size: int = 32064
    pad_token_id: int | None = 32000
    hidden_size: int = 3072
    intermediate_size: int | None = 8192
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
    def projected(self) -> tuple[int, int, int]:
        """Rows of query, key and value in the matrix that holds all three."""
        keys = self.kv_heads * self.head_width
        return self.num_attention_heads * self.head_width, keys, keys
