"""Llama (Touvron et al. 2023) in its published checkpoints, and the families that differ from it in little.

Last those whose files have columns that turn together side by side: Cohere and others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, a_size, list_of, optional, positive, shown
from tui_transformer.model.families.decoder import LAYER, DecoderConfig, decoder, less_one, llama_like
from tui_transformer.model.families.rope import FULL, LayerRopes, Rope
from tui_transformer.model.families.style import ALWAYS, Style, all_but_every
from tui_transformer.model.weight_table import Part, halves_of_pairs, side_by_side
from tui_transformer.records import dataclass, replace

STYLE = Style(bias="attention_bias", feed_forward_bias="mlp_bias")
BIASES = {"attention_bias": False, "mlp_bias": False}
EPSILON = {"rms_norm_eps": "layer_norm_eps"}

LlamaConfig = decoder("llama", STYLE, BIASES)
"""Llama."""

ArceeConfig = decoder("arcee", replace(STYLE, gated=False), BIASES)
"""Arcee (Arcee AI 2025): feed-forward layers have no gate and square what ReLU lets through."""

InternLm3Config = decoder(
    "internlm3",
    replace(STYLE, output_bias="mlp_bias"),
    BIASES,
    other_names={"attention_bias": "qkv_bias", "mlp_bias": "bias"},
)
"""InternLM 3 (Shanghai AI Laboratory 2025): Llama with biases of query, key and value, or of all other matrices."""

MULTIPLIERS = dict.fromkeys(
    ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"), 1.0
)
GraniteConfig = decoder("granite", STYLE, BIASES | MULTIPLIERS, checks=dict.fromkeys(MULTIPLIERS, positive))
"""Granite (Granite Team 2024): four multipliers, of embeddings, scores, sublayers and logits."""

SeedOssConfig = decoder(
    "seed_oss",
    replace(STYLE, output_bias="attention_out_bias"),
    {"attention_bias": True, "mlp_bias": False, "attention_out_bias": False},
)
"""Seed-OSS (ByteDance Seed 2025): biases of query, key and value, and a setting for that of the output."""

NemotronConfig = decoder(
    "nemotron",
    replace(STYLE, gated=False, norm="layer", part=0.5),
    BIASES,
    keys={"rms_norm_eps": "norm_eps"},
    weights=llama_like(
        {
            "decoder.{}.self_attention.norm.weight": less_one(f"{LAYER}.input_layernorm"),
            "decoder.{}.feed_forward.norm.weight": less_one(f"{LAYER}.post_attention_layernorm"),
            "decoder.norm.weight": less_one("model.norm"),
        }
    ),
)
"""Nemotron (Parmar et al. 2024): layer norms whose files hold γ − 1, no gate, half of every head turned."""

# With windows

MistralConfig = decoder("mistral", defaults={"sliding_window": 4096})
"""Mistral (Jiang et al. 2023): Llama without biases, and with a window in every layer."""

MinistralConfig = decoder("ministral", defaults={"sliding_window": 4096, "layer_types": None})
"""Ministral (Mistral AI 2024): Mistral with a window in some layers, as `layer_types` says.

Its files may be called Mistral's.
"""

Starcoder2Config = decoder(
    "starcoder2",
    Style(bias="use_bias", feed_forward_bias="use_bias", gated=False, norm="layer"),
    {"use_bias": True, "sliding_window": None},
    keys={"rms_norm_eps": "norm_epsilon"},
    weights=llama_like(hidden="mlp.c_fc", down="mlp.c_proj"),
)
"""StarCoder 2 (Lozhkov et al. 2024): layer norms, biases everywhere, an ungated feed-forward layer."""

LONGER: Mapping[str, Any] = {
    "rope_theta": 1e6,
    "rope_type": "llama3",
    "factor": 16.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""Rotary positions as in Llama 3.1."""

CwmConfig = decoder(
    "cwm",
    Style(feed_forward_bias="mlp_bias", slides=lambda _, layer: layer % 4 != 0, usual_rope=LONGER),
    {"sliding_window": 8192, "layer_types": None, "mlp_bias": False},
)
"""CWM (Meta FAIR 2025, "Code World Model"): a window in three of four layers; the first has none."""


def _turns(config: SmolLm3Config, layer: int, _: int | None = None) -> bool:
    """Where the file says 1, whatever the key's name says (Kazemnejad et al. 2023)."""
    every, said = config.no_rope_layer_interval, config.no_rope_layers
    return bool((layer + 1) % every if said is None else said[layer] == 1)


@dataclass(frozen=True)
class SmolLm3Config(DecoderConfig):
    """SmolLM3 (Bakouch et al. 2025): Llama whose every fourth layer has no rotary positions, and maybe a window."""

    model_type = "smollm3"
    style = replace(STYLE, slides=lambda config, layer: not _turns(config, layer), turns=_turns)
    defaults = BIASES | {"sliding_window": None, "layer_types": None, "use_sliding_window": False}
    checks: ClassVar[Mapping[str, Check]] = {"no_rope_layers": optional(list_of(0, 1))}

    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.num_hidden_layers if self.no_rope_layers is None else len(self.no_rope_layers)
        if named < self.num_hidden_layers:
            raise UsageError(f"no_rope_layers names {named} layers of {self.num_hidden_layers}")


# Phi

PhiConfig = decoder(
    "phi",
    Style(
        part=0.5,
        bias=ALWAYS,
        feed_forward_bias=ALWAYS,
        logits_bias=True,
        gated=False,
        norm="layer",
        parallel="one norm",
        head_norms="alike",
        head_norms_where="qk_layernorm",
    ),
    {"qk_layernorm": False},
    keys=EPSILON,
    weights=llama_like(
        {"decoder.norm": "model.final_layernorm"},
        query_norm="self_attn.q_layernorm",
        key_norm="self_attn.k_layernorm",
        output="self_attn.dense",
        hidden="mlp.fc1",
        down="mlp.fc2",
    ),
)
"""Phi (Gunasekar et al. 2023; Javaheripi et al. 2023): both sublayers read one norm, every matrix has a bias."""


def rows_of_heads(config: DecoderConfig) -> tuple[int, int, int]:
    """Rows of query, key and value in a matrix that holds all three one after the other."""
    keys = config.kv_heads * config.head_width
    return config.num_attention_heads * config.head_width, keys, keys


GATED = side_by_side("mlp.gate_up_proj", lambda config: (config.intermediate_size,) * 2, ("gate", "hidden"))
"""The gate and what it gates, in one matrix."""


@dataclass(frozen=True)
class Phi3Config(DecoderConfig):
    """Phi-3 (Abdin et al. 2024), of which Phi-4 is one: Llama whose files hold query, key and value in one matrix."""

    model_type = "phi3"
    style = Style(part=1.0)
    defaults: ClassVar[Mapping[str, Any]] = {"original_max_position_embeddings": 4096, "sliding_window": None}
    weights = llama_like(**side_by_side("self_attn.qkv_proj", rows_of_heads), **GATED)

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """`su` and `yarn` of old files are `longrope`; the old context is a setting of the model."""
        given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
        kind = given.get("rope_type", given.get("type", "default")) if isinstance(given, Mapping) else "default"
        if kind not in ("default", "longrope", "su", "yarn"):
            raise UsageError(f"rope_type {shown(kind)} is not known in {cls.model_type} models: use default, longrope")
        raw = {"original_max_position_embeddings": cls.defaults["original_max_position_embeddings"], **raw}
        if kind in ("su", "yarn"):
            raw = {**raw, "rope_scaling": {**given, "rope_type": "longrope"}}
        return super().read_rope(raw)


# Columns that turn together side by side

IN_HALVES = halves_of_pairs(lambda config: config.ropes[FULL].width(config.head_width))
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""

QUERY_AND_KEY = {name: Part(f"self_attn.{name[0]}_proj", IN_HALVES) for name in ("query", "key")}
NORMS = {
    f"decoder.{{}}.self_attention.{name}_norm.{{}}": Part(f"{LAYER}.self_attn.{name[0]}_norm", IN_HALVES, stacked=True)
    for name in ("query", "key")
}
TURNED_IN_PAIRS = llama_like(NORMS, **QUERY_AND_KEY)

COHERE = Style(
    bias="attention_bias",
    norm="layer",
    shift=False,
    parallel="one norm",
    head_norms="own",
    head_norms_where="use_qk_norm",
    in_pairs=True,
)
COHERE_OWN: Mapping[str, Any] = {"logit_scale": 0.0625, "attention_bias": False, "use_qk_norm": False}
CohereConfig = decoder("cohere", COHERE, COHERE_OWN, keys=EPSILON, weights=TURNED_IN_PAIRS)
"""Cohere (Command R, 2024): both sublayers read one norm, which has no shift."""


Cohere2Config = decoder(
    "cohere2",
    replace(COHERE, slides=all_but_every("sliding_window_pattern"), turns=lambda _, __, window: window is not None),
    {**COHERE_OWN, "sliding_window": 4096, "layer_types": None, "sliding_window_pattern": 4},
    keys=EPSILON,
    fixed={**DecoderConfig.fixed, "use_qk_norm": False},
    weights=TURNED_IN_PAIRS,
)
"""Cohere 2 (Command R7B, 2024): layers have a window and rotary positions, or neither (Kazemnejad et al. 2023)."""

HeliumConfig = decoder(
    "helium",
    Style(bias="attention_bias", output_bias="", feed_forward_bias="mlp_bias", in_pairs=True),
    BIASES,
    checks={"head_dim": a_size},
    weights=TURNED_IN_PAIRS,
)
"""Helium (Kyutai 2025): Llama."""

Ernie45Config = decoder(
    "ernie4_5",
    Style(bias="use_bias", feed_forward_bias="use_bias", in_pairs=True),
    {"use_bias": False},
    weights=TURNED_IN_PAIRS,
)
"""ERNIE 4.5 (Baidu 2025), dense: Llama with one setting for all biases."""

# Half of every head turned

HALF = Style(part=0.5, bias="attention_bias", output_bias="", in_pairs=True)

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
