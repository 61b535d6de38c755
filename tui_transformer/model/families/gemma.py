"""Gemma (Gemma Team 2024, 2025), OLMo (OLMo Team 2024, 2025) and EXAONE 4: norms behind the sublayers, and of heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import a_size, is_whole, shown
from tui_transformer.model.description import Attention
from tui_transformer.model.families.decoder import ROUTED_PARTS, DecoderConfig, decoder, less_one, llama_like
from tui_transformer.model.families.style import BIASED, Style, all_but_every, every_other
from tui_transformer.records import dataclass, replace

STYLE = replace(BIASED, root_scaled=True)
OF_HEADS = {"head_dim": a_size}
LAST = {"decoder.norm": less_one("model.norm")}
ONE_SIDE: Mapping[str, Any] = {**DecoderConfig.fixed, "use_bidirectional_attention": None}


@dataclass(frozen=True)
class GemmaConfig(DecoderConfig):
    """Gemma: wide heads, embeddings times √d_model, and γ − 1 of every norm in the file."""

    model_type = "gemma"
    style = STYLE
    defaults: ClassVar[Mapping[str, Any]] = {"attention_bias": False}
    checks = OF_HEADS
    fixed = ONE_SIDE
    weights = llama_like(LAST, norm=less_one("input_layernorm"), feed_norm=less_one("post_attention_layernorm"))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; "gelu" of old files means its approximation by tanh."""
        approximated = {"hidden_act": "gelu_pytorch_tanh"} if raw.get("hidden_act") == "gelu" else {}
        return super().from_json({**raw, **approximated})


BOTH_SIDES = {
    "norm": less_one("input_layernorm"),
    "output_norm": less_one("post_attention_layernorm"),
    "feed_norm": less_one("pre_feedforward_layernorm"),
    "feed_output_norm": less_one("post_feedforward_layernorm"),
}
GEMMA2 = replace(STYLE, place="both", heads_divide=True, slides=every_other)
OWN: Mapping[str, Any] = {
    "attention_bias": False,
    "sliding_window": 4096,
    "layer_types": None,
    "query_pre_attn_scalar": 256,
    "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 50.0,
}
KEYS = {"hidden_act": "hidden_activation"}

Gemma2Config = decoder(
    "gemma2", GEMMA2, OWN, keys=KEYS, checks=OF_HEADS, fixed=ONE_SIDE, weights=llama_like(LAST, **BOTH_SIDES)
)
"""Gemma 2: norms on both sides of a sublayer, soft caps, scores divided by a constant (Gemma Team 2024, §2).

Every other layer has a window, the first among them.
"""


@dataclass(frozen=True)
class Gemma3Config(DecoderConfig):
    """Gemma 3, the text model: Gemma 2 with normalised heads, five layers with a window to each without (§2)."""

    model_type = "gemma3_text"
    style = replace(
        GEMMA2,
        head_norms="alike",
        slides=all_but_every("sliding_window_pattern"),
        theta_of_windows=("rope_local_base_freq", 1e4),
    )
    defaults: ClassVar[Mapping[str, Any]] = {**OWN, "final_logit_softcapping": None, "attn_logit_softcapping": None}
    keys = KEYS
    checks = OF_HEADS
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "attn_logit_softcapping": None}
    weights = llama_like(
        LAST, **BOTH_SIDES, query_norm=less_one("self_attn.q_norm"), key_norm=less_one("self_attn.k_norm")
    )

    sliding_window_pattern: int = 6
    use_bidirectional_attention: bool | None = False

    @property
    def window(self) -> int | None:
        """How many keys a query of a layer with a window sees; where it sees later ones too, half on either side."""
        window: int | None = self.setting("sliding_window")
        return window // 2 + 1 if window and self.use_bidirectional_attention else window

    def attention(self) -> Attention:
        return replace(super().attention(), causal=not self.use_bidirectional_attention)


# OLMo and EXAONE: x + norm(f(x)), and an RMS norm of all query heads, and of all key heads (OLMo 2, §3.2)

OLMO = replace(BIASED, place="output", head_norms="together")
BEHIND = llama_like(output_norm="post_attention_layernorm", feed_output_norm="post_feedforward_layernorm")

Olmo2Config = decoder("olmo2", OLMO, {"attention_bias": False}, weights=BEHIND)
"""OLMo 2: sublayers are x + norm(f(x)) (OLMo Team 2024, §3.2)."""

Olmo3Config = decoder(
    "olmo3",
    replace(OLMO, slides=all_but_every(4), theta_of_windows=("", 5e5)),
    {"attention_bias": False, "sliding_window": 4096, "layer_types": None},
    weights=BEHIND,
)
"""OLMo 3: OLMo 2 with a window in three of four layers.

`rope_theta` of old files is that of the layers without a window, as the published code reads it.
"""

OlmoeConfig = decoder(
    "olmoe",
    replace(OLMO, place="pre"),
    {"attention_bias": False, "num_experts": 64, "num_experts_per_tok": 8, "norm_topk_prob": False},
    other_names={"num_experts": "num_local_experts"},
    fixed={**DecoderConfig.fixed, "clip_qkv": None},
    weights=llama_like(ROUTED_PARTS),
)
"""OLMoE (Muennighoff et al. 2024): pre-norm, with experts (§2)."""


def _slides(config: Any, layer: int) -> bool:
    pattern = config.sliding_window_pattern
    return config.window is not None and isinstance(pattern, int) and (layer + 1) % pattern != 0


def _turns(config: Any, _: int, window: int | None) -> bool:
    """Where some layers have a window, those without have no rotary positions (Kazemnejad et al. 2023)."""
    return config.window is None or window is not None


@dataclass(frozen=True)
class Exaone4Config(DecoderConfig):
    """EXAONE 4 (LG AI Research 2025): norms behind the sublayers and of heads; windows in some layers."""

    model_type = "exaone4"
    style = Style(place="output", head_norms="alike", slides=_slides, turns=_turns)
    defaults: ClassVar[Mapping[str, Any]] = {"sliding_window": 4096, "layer_types": None}
    weights = BEHIND

    sliding_window_pattern: str | int | None = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        pattern = self.sliding_window_pattern if self.window is not None else None
        if pattern is not None and not isinstance(pattern, str) and not is_whole(pattern, 1):
            raise UsageError(f"sliding_window_pattern {shown(pattern)} is neither a count of layers nor letters")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a pattern of letters is only read as `layer_types`."""
        pattern = raw.get("sliding_window_pattern", 4)
        if raw.get("layer_types") is None and raw.get("sliding_window", 4096) is not None and not is_whole(pattern, 1):
            raise UsageError(f"sliding_window_pattern {shown(pattern)} without layer_types is not supported")
        return super().from_json(raw)
