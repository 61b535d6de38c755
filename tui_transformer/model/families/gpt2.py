"""GPT-2 (Radford et al. 2019) and the other decoders of its settings: GPT-BigCode, GPT-Neo and GPT-J."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Scale
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import MOST_LAYERS, Check, a_size, optional, shown
from tui_transformer.model.description import ATTENTION_MATRICES, Attention, Head, Layer, Rotary
from tui_transformer.model.families.decoder import ALWAYS, NOT_TURNED, DecoderConfig
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.layers import NOT_DIVIDED, divided
from tui_transformer.model.weight_table import Part, Take, WeightTable, cut, halves_of_pairs

PLAIN_KEYS = {"hidden_act": "activation_function", "rms_norm_eps": "layer_norm_epsilon"}
KEYS = {
    **PLAIN_KEYS,
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}
OTHER_NAMES = {KEYS[field]: field for field in KEYS if field not in (*PLAIN_KEYS, "intermediate_size")}


@dataclass(frozen=True)
class PlainSettings:
    """What GPT-2 (Radford et al. 2019, §2.3) and its relatives share: layer norms, every bias, no gate, no groups."""

    keys: ClassVar[Mapping[str, str]] = PLAIN_KEYS
    of_the_file: ClassVar[frozenset[str]] = NOT_TURNED
    checks: ClassVar[Mapping[str, Check]] = {"intermediate_size": optional(a_size)}
    positions: ClassVar[str] = "learned"
    norm_kind: ClassVar[str] = "layer"
    gated: ClassVar[bool] = False
    biases: ClassVar[Mapping[str, frozenset[str]]] = {ALWAYS: ATTENTION_MATRICES}
    feed_forward_bias: ClassVar[str] = ALWAYS

    vocab_size: int = 50257
    tie_word_embeddings: bool = True
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 1024
    intermediate_size: int | None = None
    hidden_act: str = "gelu_new"
    rms_norm_eps: float = 1e-5


def third(place: int) -> Take:
    """Query (0), key (1) or value (2) of `c_attn`, whose columns hold them side by side."""

    def take(tensor: Host, config: Gpt2Config) -> Host:
        del config
        return np.split(tensor, 3, axis=-1)[place]

    return take


LAYER = "transformer.h.{}"
PARTS: Mapping[str, str | Part] = {
    "embedding.tokens": "transformer.wte",
    "embedding.positions": "transformer.wpe",
    "decoder.{}.self_attention.norm": f"{LAYER}.ln_1",
    "decoder.{}.self_attention.query": Part(f"{LAYER}.attn.c_attn", third(0)),
    "decoder.{}.self_attention.key": Part(f"{LAYER}.attn.c_attn", third(1)),
    "decoder.{}.self_attention.value": Part(f"{LAYER}.attn.c_attn", third(2)),
    "decoder.{}.self_attention.output": f"{LAYER}.attn.c_proj",
    "decoder.{}.feed_forward.norm": f"{LAYER}.ln_2",
    "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.c_fc",
    "decoder.{}.feed_forward.output": f"{LAYER}.mlp.c_proj",
    "decoder.norm": "transformer.ln_f",
    "output.logits": Part("lm_head", turned=True),
}


@dataclass(frozen=True)
class Gpt2Config(PlainSettings, DecoderConfig):
    """GPT-2."""

    model_type = "gpt2"
    title = "GPT-2"
    keys = KEYS
    other_names = OTHER_NAMES
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "add_cross_attention": False}
    weights = WeightTable(PARTS, prefix="transformer.", in_out=True)

    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False

    def layers(self) -> tuple[Layer, ...]:
        """Scores may be divided by the number of the layer too, or not at all."""
        scaled = [
            replace(layer, attention=replace(layer.attention, scale=self._scale(number)))
            for number, layer in enumerate(super().layers(), start=1)
        ]
        return tuple(scaled)

    def _scale(self, number: int) -> Scale:
        divisor = float(number) if self.scale_attn_by_inverse_layer_idx else 1.0
        if self.scale_attn_weights:
            return divided(self.head_width, divisor)
        return NOT_DIVIDED if divisor == 1.0 else Scale(1.0 / divisor, f"÷ {divisor:g}")


def projected(place: int) -> Part:
    """Query (0), key (1) or value (2) of a matrix that holds the queries of all heads, one key and one value."""
    sizes = cut(place, lambda config: (config.hidden_size, config.head_width, config.head_width))
    return Part(f"{LAYER}.attn.c_attn", sizes)


@dataclass(frozen=True)
class GptBigCodeConfig(PlainSettings, DecoderConfig):
    """GPT-BigCode (Ben Allal et al. 2023), of which StarCoder is one: queries look at the same keys (Shazeer 2019)."""

    model_type = "gpt_bigcode"
    title = "GPT-BigCode"
    keys = KEYS
    other_names = OTHER_NAMES
    fixed: ClassVar[Mapping[str, Any]] = {
        **DecoderConfig.fixed,
        "add_cross_attention": False,
        "multi_query": True,
        "scale_attn_weights": True,
    }
    weights = WeightTable(
        {
            **PARTS,
            "decoder.{}.self_attention.query": projected(0),
            "decoder.{}.self_attention.key": projected(1),
            "decoder.{}.self_attention.value": projected(2),
        },
        prefix="transformer.",
    )

    num_key_value_heads: int | None = 1
    hidden_act: str = "gelu_pytorch_tanh"


GLOBAL, LOCAL = "global", "local"


def local_kinds(key: str, value: object) -> None:
    """Names of kinds of attention, one a layer."""
    if not isinstance(value, tuple) or not all(each in (GLOBAL, LOCAL) for each in value):
        raise UsageError(f"{key} {shown(value)} is not a list of {GLOBAL} and {LOCAL}")


@dataclass(frozen=True)
class GptNeoConfig(PlainSettings, DecoderConfig):
    """GPT-Neo (Black et al. 2021): a window in some layers, scores that are not divided, a bias of the output alone.

    Attributes:
        attention_layers: The kind of every layer; files may say it as `attention_types`, kinds and how often.
    """

    model_type = "gpt_neo"
    title = "GPT-Neo"
    keys: ClassVar[Mapping[str, str]] = {
        **PLAIN_KEYS,
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
    }
    other_names: ClassVar[Mapping[str, str]] = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    checks: ClassVar[Mapping[str, Check]] = {"attention_layers": local_kinds}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {ALWAYS: frozenset({"output"})}
    weights = WeightTable(
        {
            **PARTS,
            "decoder.{}.self_attention.query": f"{LAYER}.attn.attention.q_proj",
            "decoder.{}.self_attention.key": f"{LAYER}.attn.attention.k_proj",
            "decoder.{}.self_attention.value": f"{LAYER}.attn.attention.v_proj",
            "decoder.{}.self_attention.output": f"{LAYER}.attn.attention.out_proj",
            "output.logits": "lm_head",
        },
        prefix="transformer.",
    )

    max_position_embeddings: int = 2048
    hidden_size: int = 2048
    num_hidden_layers: int = 24
    attention_layers: tuple[str, ...] = (GLOBAL, LOCAL) * 12
    num_attention_heads: int = 16
    window_size: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.attention_layers) != self.num_hidden_layers:
            raise UsageError(f"attention_types names {len(self.attention_layers)} layers of {self.num_hidden_layers}")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        types = raw.get("attention_types")
        layers = raw.get("attention_layers") if types is None else _layers(types)
        given = {key: value for key, value in raw.items() if key != "attention_layers"}
        named = {} if layers is None else {"attention_layers": tuple(layers) if isinstance(layers, list) else layers}
        config = super().from_json(given | named)
        if raw.get("attention_layers", layers) != layers:
            said = shown(raw["attention_layers"])
            raise UsageError(f"attention_layers {said} are not those of attention_types {shown(types)}")
        return config

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of every layer."""
        return tuple(SLIDING if kind == LOCAL else FULL for kind in self.attention_layers)

    @property
    def window(self) -> int | None:
        """How many keys a query of a local layer sees."""
        return self.window_size

    def attention(self) -> Attention:
        """Scores are not divided."""
        return replace(super().attention(), scale=NOT_DIVIDED)


def _layers(types: object) -> list[str]:
    """The kind of every layer, from lists of kinds and how often each is repeated."""
    wrong = UsageError(f"attention_types {shown(types)} is not a list of kinds of layers and how often they come")
    attentions: list[str] = []
    for pair in types if isinstance(types, list) else [None]:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list) and _is_count(pair[1])):
            raise wrong
        attentions += map(str, pair[0] * pair[1])
        if len(attentions) > MOST_LAYERS:
            raise wrong
    return attentions


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_LAYERS


IN_HALVES = halves_of_pairs(lambda config: config.rotary_dim)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""


@dataclass(frozen=True)
class GptJConfig(PlainSettings, DecoderConfig):
    """GPT-J (Wang & Komatsuzaki 2021): both sublayers read one norm, a part of every head is turned in pairs."""

    model_type = "gptj"
    title = "GPT-J"
    keys = KEYS
    other_names = OTHER_NAMES
    positions = "none"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {}
    parallel = "one norm"
    weights = WeightTable(
        {
            "embedding.tokens": "transformer.wte",
            "decoder.{}.self_attention.norm": f"{LAYER}.ln_1",
            "decoder.{}.self_attention.query": Part(f"{LAYER}.attn.q_proj", IN_HALVES),
            "decoder.{}.self_attention.key": Part(f"{LAYER}.attn.k_proj", IN_HALVES),
            "decoder.{}.self_attention.value": f"{LAYER}.attn.v_proj",
            "decoder.{}.self_attention.output": f"{LAYER}.attn.out_proj",
            "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.fc_in",
            "decoder.{}.feed_forward.output": f"{LAYER}.mlp.fc_out",
            "decoder.norm": "transformer.ln_f",
            "output.logits": "lm_head",
        },
        prefix="transformer.",
    )

    vocab_size: int = 50400
    tie_word_embeddings: bool = False
    hidden_size: int = 4096
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    max_position_embeddings: int = 2048
    rotary_dim: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rotary_dim % 2 or self.head_width % self.rotary_dim:
            raise UsageError(
                f"rotary_dim {shown(self.rotary_dim)} is odd or does not divide the {self.head_width} columns of a head"
                ": this is not supported"
            )

    @property
    def longest(self) -> int:
        """No more than it was made for."""
        return self.max_length

    def rotary(self, kind: str) -> Rotary:
        """Of some columns, in every layer."""
        del kind
        return Rope().rotary(self.rotary_dim)

    def word_head(self) -> Head:
        """With a bias for every word."""
        return replace(super().word_head(), bias=True)
