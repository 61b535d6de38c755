"""Cohere (Command R, 2024), and the other families whose files have columns that turn together side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import a_size
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE
from tui_transformer.model.families.decoder import LAYER, DecoderConfig, decoder, llama_like
from tui_transformer.model.families.llama import BIASES, GATED
from tui_transformer.model.families.style import ATTENTION_BIAS, Style, all_but_every
from tui_transformer.model.weight_table import Part, halves_of_pairs
from tui_transformer.records import dataclass, replace


def _turned(config: DecoderConfig) -> int:
    (rope,) = config.ropes
    return rope.width(config.head_width)


IN_HALVES = halves_of_pairs(_turned)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""

QUERY_AND_KEY = {name: Part(f"self_attn.{name[0]}_proj", IN_HALVES) for name in ("query", "key")}
NORMS = {
    f"decoder.{{}}.self_attention.{name}_norm.{{}}": Part(
        f"{LAYER}.self_attn.{name[0]}_norm", IN_HALVES, turned=False, stacked=True
    )
    for name in ("query", "key")
}
WEIGHTS = llama_like(NORMS, **QUERY_AND_KEY)

STYLE = Style(
    biases=ATTENTION_BIAS,
    norm="layer",
    shift=False,
    parallel="one norm",
    head_norms="own",
    head_norms_where="use_qk_norm",
    in_pairs=True,
)
OWN: Mapping[str, Any] = {"logit_scale": 0.0625, "attention_bias": False, "use_qk_norm": False}
KEYS = {"rms_norm_eps": "layer_norm_eps"}

CohereConfig = decoder("cohere", STYLE, OWN, keys=KEYS, weights=WEIGHTS)
"""Cohere: both sublayers read one norm, which has no shift."""


@dataclass(frozen=True)
class Cohere2Config(DecoderConfig):
    """Cohere 2 (Command R7B, 2024): layers have a window and rotary positions, or neither."""

    model_type = "cohere2"
    style = replace(STYLE, slides=all_but_every("sliding_window_pattern"))
    own: ClassVar[Mapping[str, Any]] = {**OWN, "sliding_window": 4096, "layer_types": None}
    keys = KEYS
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "use_qk_norm": False}
    weights = WEIGHTS

    sliding_window_pattern: int = 4

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a head has the model's width divided by the heads."""
        return super().from_json({key: value for key, value in raw.items() if key != "head_dim"})

    def is_turned(self, layer: int, window: int | None) -> bool:
        """Layers without a window have no rotary positions (Kazemnejad et al. 2023)."""
        del layer
        return window is not None


HeliumConfig = decoder(
    "helium",
    Style(biases={"attention_bias": QUERY_KEY_VALUE}, feed_forward_bias="mlp_bias", in_pairs=True),
    BIASES,
    checks={"head_dim": a_size},
    weights=WEIGHTS,
)
"""Helium (Kyutai 2025): Llama."""

Ernie45Config = decoder(
    "ernie4_5",
    Style(biases={"use_bias": ATTENTION_MATRICES}, feed_forward_bias="use_bias", in_pairs=True),
    {"use_bias": False},
    weights=WEIGHTS,
)
"""ERNIE 4.5 (Baidu 2025), dense: Llama with one setting for all biases."""

# Half of every head turned

HALF = Style(turned_in_part=True, whole=0.5, biases={"attention_bias": QUERY_KEY_VALUE}, in_pairs=True)

GlmConfig = decoder("glm", HALF, {"attention_bias": True}, weights=llama_like(**QUERY_AND_KEY, **GATED))
"""GLM-4 (GLM Team 2024) in its newer files."""

Glm4Config = decoder(
    "glm4",
    replace(HALF, place="both"),
    {"attention_bias": True},
    weights=llama_like(
        **QUERY_AND_KEY, **GATED, output_norm="post_self_attn_layernorm", feed_output_norm="post_mlp_layernorm"
    ),
)
"""GLM-4-0414 (Zhipu AI 2025): a norm before and after every sublayer."""
