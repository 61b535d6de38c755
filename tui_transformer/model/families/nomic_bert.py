"""Nomic BERT (Nussbaum et al. 2024): BERT with rotary positions and gated feed-forward layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.description import ACTIVATION_NAMES, NO_MATRICES, Embedding, FeedForward, Layer
from tui_transformer.model.families.bert import EncoderConfig
from tui_transformer.model.families.rope import Rope, read_rope
from tui_transformer.model.weight_table import Part, WeightTable, cut

THETA, THETAS = 1000.0, ("rope_theta", "rotary_emb_base")


LAYER, HEAD = "nomic_bert.encoder.layers.{}", "cls.predictions.transform"


def fused(place: int) -> Part:
    """Query (0), key (1) or value (2) of the matrix that holds all three."""
    return Part(f"{LAYER}.attn.Wqkv", cut(place, lambda config: (config.d_model,) * 3))


@dataclass(frozen=True)
class NomicBertConfig(EncoderConfig):
    """Sizes and choices of a Nomic BERT."""

    model_type = "nomic_bert"
    title = "Nomic BERT"
    other_names: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
        "intermediate_size": "n_inner",
        "max_position_embeddings": "n_positions",
        "layer_norm_eps": "layer_norm_epsilon",
    }
    fixed: ClassVar[Mapping[str, Any]] = {
        **EncoderConfig.fixed,
        "activation_function": "swiglu",
        "rotary_emb_fraction": 1.0,
        "rotary_scaling_factor": None,
        **dict.fromkeys(("prenorm", "parallel_block", "causal", "use_rms_norm", "rotary_emb_interleaved"), False),
        **dict.fromkeys(("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"), False),
    }

    weights = WeightTable(
        {
            "embedding.tokens": "nomic_bert.embeddings.word_embeddings",
            "embedding.segments": "nomic_bert.embeddings.token_type_embeddings",
            "embedding.norm": "nomic_bert.emb_ln",
            "encoder.{}.self_attention.query": fused(0),
            "encoder.{}.self_attention.key": fused(1),
            "encoder.{}.self_attention.value": fused(2),
            "encoder.{}.self_attention.output": f"{LAYER}.attn.out_proj",
            "encoder.{}.self_attention.norm": f"{LAYER}.norm1",
            "encoder.{}.feed_forward.hidden": f"{LAYER}.mlp.fc11",
            "encoder.{}.feed_forward.gate": f"{LAYER}.mlp.fc12",
            "encoder.{}.feed_forward.output": f"{LAYER}.mlp.fc2",
            "encoder.{}.feed_forward.norm": f"{LAYER}.norm2",
            "output.transform.hidden": f"{HEAD}.dense",
            "output.transform.norm": Part((f"{HEAD}.layer_norm", f"{HEAD}.LayerNorm")),
            "output.logits": Part(("cls.predictions.decoder", "cls.predictions")),
        },
        prefix="nomic_bert.",
        prefixes=("", "bert."),
    )

    vocab_size: int = 30528
    activation: str = "silu"
    position_rows: int = 2048
    rope_parameters: Rope = field(default_factory=lambda: Rope(rope_theta=THETA))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rope_parameters.partial_rotary_factor != 1.0:
            raise UsageError("partial_rotary_factor other than 1 is not supported in nomic_bert models")
        self.rope_parameters.width(self.d_model // self.heads)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        width = raw.get("head_dim")
        config = super().from_json(
            {**raw, "rope_parameters": read_rope(raw, theta=THETAS, default=THETA, context=2048)}
        )
        if width is not None and width != config.d_model // config.heads:
            raise UsageError(f"head_dim {width} is not hidden_size ÷ num_attention_heads: this is not supported")
        return config

    def embedding(self) -> Embedding:
        """Words and segments, normalised; positions turn queries and keys."""
        return replace(super().embedding(), positions="none", max_length=0)

    def layer(self) -> Layer:
        """Post-norm, gated, without biases."""
        layer = super().layer()
        turn = self.rope_parameters.rotary(self.d_model // self.heads)
        attention = replace(layer.attention, bias=NO_MATRICES, rotary=turn)
        feed_forward = FeedForward(self.d_ff, ACTIVATION_NAMES[self.activation], gated=True)
        return replace(layer, attention=attention, feed_forward=feed_forward)
