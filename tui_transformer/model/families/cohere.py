"""Cohere (Command R, 2024), and the other families whose files have columns that turn together side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, a_size, shown
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE
from tui_transformer.model.families.decoder import LAYER, DecoderConfig, llama_like
from tui_transformer.model.families.llama import BIASES, gated
from tui_transformer.model.families.style import ATTENTION_BIAS, Style
from tui_transformer.model.weight_table import Part, halves_of_pairs

IN_HALVES = halves_of_pairs(lambda config: config.head_width)
WEIGHTS = llama_like(
    {
        f"decoder.{{}}.self_attention.{name}_norm.{{}}": Part(
            f"{LAYER}.self_attn.{name[0]}_norm", IN_HALVES, turned=False, stacked=True
        )
        for name in ("query", "key")
    },
    query=Part("self_attn.q_proj", IN_HALVES),
    key=Part("self_attn.k_proj", IN_HALVES),
)


@dataclass(frozen=True)
class CohereConfig(DecoderConfig):
    """Cohere: both sublayers read one norm, which has no shift."""

    model_type = "cohere"
    style = Style(
        biases=ATTENTION_BIAS,
        norm="layer",
        shift=False,
        parallel="one norm",
        head_norms="own",
        head_norms_where="use_qk_norm",
    )
    own: ClassVar[Mapping[str, Any]] = {"logit_scale": 0.0625, "attention_bias": False, "use_qk_norm": False}
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    weights = WEIGHTS


@dataclass(frozen=True)
class Cohere2Config(DecoderConfig):
    """Cohere 2 (Command R7B, 2024): layers have a window and rotary positions, or neither."""

    model_type = "cohere2"
    style = CohereConfig.style
    own: ClassVar[Mapping[str, Any]] = {**CohereConfig.own, "sliding_window": 4096, "layer_types": None}
    keys = CohereConfig.keys
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "use_qk_norm": False}
    weights = WEIGHTS

    sliding_window_pattern: int = 4

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a head has the model's width divided by the heads."""
        return super().from_json({key: value for key, value in raw.items() if key != "head_dim"})

    def slides(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def is_turned(self, layer: int, window: int | None) -> bool:
        """Layers without a window have no rotary positions (Kazemnejad et al. 2023)."""
        del layer
        return window is not None


@dataclass(frozen=True)
class HeliumConfig(DecoderConfig):
    """Helium (Kyutai 2025): Llama."""

    model_type = "helium"
    style = Style(biases={"attention_bias": QUERY_KEY_VALUE}, feed_forward_bias="mlp_bias")
    own = BIASES
    checks: ClassVar[Mapping[str, Check]] = {"head_dim": a_size}
    weights = WEIGHTS


@dataclass(frozen=True)
class Ernie45Config(DecoderConfig):
    """ERNIE 4.5 (Baidu 2025), dense: Llama with one setting for all biases."""

    model_type = "ernie4_5"
    style = Style(biases={"use_bias": ATTENTION_MATRICES}, feed_forward_bias="use_bias")
    own: ClassVar[Mapping[str, Any]] = {"use_bias": False}
    weights = WEIGHTS


# Half of every head turned


def turned(config: DecoderConfig) -> int:
    """Columns of a head that are turned."""
    (rope,) = config.ropes
    return rope.width(config.head_width)


TURNED = halves_of_pairs(turned)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""

HALF_TURNED = {
    "query": Part("self_attn.q_proj", TURNED),
    "key": Part("self_attn.k_proj", TURNED),
    "gate": gated(0),
    "hidden": gated(1),
}


@dataclass(frozen=True)
class GlmConfig(DecoderConfig):
    """GLM-4 (GLM Team 2024) in its newer files."""

    model_type = "glm"
    style = Style(turned_in_part=True, whole=0.5, biases={"attention_bias": QUERY_KEY_VALUE})
    own: ClassVar[Mapping[str, Any]] = {"attention_bias": True}
    weights = llama_like(**HALF_TURNED)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_turned(self)


@dataclass(frozen=True)
class Glm4Config(DecoderConfig):
    """GLM-4-0414 (Zhipu AI 2025): a norm before and after every sublayer."""

    model_type = "glm4"
    style = replace(GlmConfig.style, place="both")
    own = GlmConfig.own
    weights = llama_like(**HALF_TURNED, output_norm="post_self_attn_layernorm", feed_output_norm="post_mlp_layernorm")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_turned(self)


def _check_turned(config: DecoderConfig) -> None:
    """Raise UsageError where columns that are turned do not divide those of a head."""
    if config.head_width % turned(config):
        raise UsageError(
            f"{shown(turned(config))} columns that are turned do not divide head_dim {shown(config.head_width)}: "
            "this is not supported"
        )
