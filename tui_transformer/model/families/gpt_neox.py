"""GPT-NeoX (Black et al. 2022), of which Pythia (Biderman et al. 2023) is one, StableLM, BLOOM and Falcon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, checked, shown
from tui_transformer.model.description import Attention, Embedding, Layer, Rotary
from tui_transformer.model.families.decoder import DECODER_LAYER, LAYER, DecoderConfig, decoder, llama_like
from tui_transformer.model.families.gpt2 import PLAIN, PLAIN_KEYS
from tui_transformer.model.families.rope import Rope, read_rope
from tui_transformer.model.families.style import ALWAYS, Style
from tui_transformer.model.layers import Distances, alibi_slopes
from tui_transformer.model.weight_table import QUERY_KEY_VALUE, Part, WeightTable, layer_parts, of_every_group
from tui_transformer.records import dataclass, replace


def _fused(layer: str, attention: str) -> Mapping[str, str | Part]:
    """The parts of layers whose query, key and value are one tensor."""
    fused = (Part(f"{attention}.query_key_value", of_every_group(place)) for place in range(3))
    return layer_parts(
        DECODER_LAYER,
        layer,
        norm="input_layernorm",
        **dict(zip(QUERY_KEY_VALUE, fused, strict=True)),
        output=f"{attention}.dense",
        feed_norm="post_attention_layernorm",
        hidden="mlp.dense_h_to_4h",
        down="mlp.dense_4h_to_h",
    )


@dataclass(frozen=True)
class NeoxConfig(DecoderConfig):
    """GPT-NeoX: sublayers run side by side (Black et al. 2022, §2.1)."""

    model_type = "gpt_neox"
    style = Style(
        part=0.25,
        bias="attention_bias",
        feed_forward_bias=ALWAYS,
        gated=False,
        norm="layer",
        parallel="two norms",
    )
    defaults: ClassVar[Mapping[str, Any]] = {"use_parallel_residual": True, "attention_bias": True}
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    of_the_file = frozenset({"num_key_value_heads", "head_dim"})
    weights = WeightTable(
        {
            "embedding.tokens": "gpt_neox.embed_in",
            **_fused("gpt_neox.layers.{}", "attention"),
            "decoder.norm": "gpt_neox.final_layer_norm",
            "output.logits": "embed_out",
        },
        prefix="gpt_neox.",
    )

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        config = super().from_json(raw)
        if raw.get("head_dim", config.head_width) != config.head_width:
            raise UsageError(
                f"head_dim {shown(raw['head_dim'])} is not hidden_size ÷ num_attention_heads, {config.head_width}: "
                "not supported"
            )
        return config

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope:
        if "rotary_pct" in raw and raw["rotary_pct"] is None:
            raise UsageError("rotary_pct is null, which is no number: leave it out for the default")
        return read_rope(raw, theta=("rotary_emb_base",), partial=("rotary_pct",), whole=cls.style.part or 1.0)


StableLmConfig = decoder(
    "stablelm",
    Style(
        part=0.25,
        bias="use_qkv_bias",
        output_bias="",
        norm="layer",
        parallel="one norm",
        head_norms="own",
        head_norms_where="qk_layernorm",
    ),
    {"use_qkv_bias": False, "qk_layernorm": False, "use_parallel_residual": False},
    keys={"rms_norm_eps": "layer_norm_eps"},
    weights=llama_like(
        {
            f"decoder.{{}}.self_attention.{name}_norm.{{}}": f"{LAYER}.self_attn.{name[0]}_layernorm.norms.{{}}"
            for name in ("query", "key")
        }
    ),
)
"""StableLM (Bellagente et al. 2024): Llama with layer norms, a quarter of each head turned."""

# Distances

BLOOM_LAYER = "transformer.h.{}"
BLOOM_PARTS: Mapping[str, str | Part] = {
    "embedding.tokens": "transformer.word_embeddings",
    "embedding.norm": "transformer.word_embeddings_layernorm",
    **_fused(BLOOM_LAYER, "self_attention"),
    "decoder.norm": "transformer.ln_f",
    "output.logits": "lm_head",
}


@dataclass(frozen=True)
class BloomConfig(DecoderConfig):
    """BLOOM (BigScience Workshop 2022): no positions but distances taken off the scores, a norm of the embedding.

    `seq_length` is what it was made for.
    """

    model_type = "bloom"
    style = replace(PLAIN, positions="none")
    keys: ClassVar[Mapping[str, str]] = {
        **PLAIN_KEYS,
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "seq_length",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embed",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
    }
    fixed: ClassVar[Mapping[str, Any]] = {
        **DecoderConfig.fixed,
        **dict.fromkeys(("apply_residual_connection_post_layernorm", "slow_but_exact"), False),
    }
    of_the_file = frozenset({"intermediate_size", "hidden_act"})
    weights = WeightTable(BLOOM_PARTS, prefix="transformer.")

    def embedding(self) -> Embedding:
        """Words, normalised (BigScience Workshop 2022, §3.2.3)."""
        return Embedding(norm=self.norm())

    def attention(self) -> Attention:
        """Distances are taken off the scores (BigScience Workshop 2022, §3.2.2)."""
        return replace(super().attention(), score_bias=Distances(alibi_slopes(self.num_attention_heads)))


norms_count = checked(lambda value: value in (None, 1, 2) and not isinstance(value, bool), "is neither 1 nor 2")


@dataclass(frozen=True)
class FalconConfig(DecoderConfig):
    """Falcon (Almazrouei et al. 2023): sublayers side by side, one key head or few, rotary positions or distances."""

    model_type = "falcon"
    style = Style(bias="bias", feed_forward_bias="bias", gated=False, norm="layer")
    keys: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "num_kv_heads",
        "rms_norm_eps": "layer_norm_epsilon",
        "hidden_act": "activation",
        "intermediate_size": "ffn_hidden_size",
    }
    other_names: ClassVar[Mapping[str, str]] = {"hidden_size": "n_embed"}
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "head_dim": None}
    checks: ClassVar[Mapping[str, Check]] = {"num_ln_in_parallel_attn": norms_count}
    weights = WeightTable(
        {
            **BLOOM_PARTS,
            **layer_parts(
                DECODER_LAYER,
                BLOOM_LAYER,
                norm=Part(("input_layernorm", "ln_attn")),
                feed_norm=Part(("post_attention_layernorm", "ln_mlp")),
            ),
        },
        prefix="transformer.",
    )

    alibi: bool = False
    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    bias: bool = False
    num_ln_in_parallel_attn: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.new_decoder_architecture and not self.parallel_attn:
            raise UsageError("new_decoder_architecture without parallel_attn is not supported")
        if self.num_ln_in_parallel_attn == 2 and self.parallel_attn and not self.new_decoder_architecture:
            raise UsageError("num_ln_in_parallel_attn 2 without new_decoder_architecture is not supported")
        if self.kv_heads == self.num_attention_heads != (self.num_key_value_heads or self.num_attention_heads):
            raise UsageError(f"num_kv_heads {self.num_key_value_heads} without multi_query is not supported")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; the feed-forward layer is 4 · hidden_size wide by default.

        An old name of hidden_size may be there, so its value is looked for under both.
        """
        if raw.get("ffn_hidden_size") is not None:
            return super().from_json(raw)
        size = raw.get("n_embed") or raw.get("hidden_size", cls.hidden_size)
        return super().from_json({**raw, "ffn_hidden_size": 4 * size if isinstance(size, int) else size})

    @property
    def kv_heads(self) -> int:
        if self.new_decoder_architecture:
            return self.num_key_value_heads or self.num_attention_heads
        return 1 if self.multi_query else self.num_attention_heads

    def rotary(self, kind: str) -> Rotary | None:
        return None if self.alibi else super().rotary(kind)

    def attention(self) -> Attention:
        """With rotary positions, or with distances (ALiBi), which are divided by √d_k as the scores are."""
        distances = Distances(alibi_slopes(self.num_attention_heads, math.sqrt(self.head_width)))
        return replace(super().attention(), score_bias=distances if self.alibi else None)

    def layers(self) -> tuple[Layer, ...]:
        two = self.new_decoder_architecture and self.num_ln_in_parallel_attn != 1
        parallel = ("two norms" if two else "one norm") if self.parallel_attn else ""
        return tuple(replace(layer, parallel=parallel) for layer in super().layers())
