"""GPT-2 (Radford et al. 2019) and the decoders of its settings: GPT-BigCode, GPT-Neo, GPT-J and OPT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Scale
from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import counted
from tui_transformer.model.checks import MOST_LAYERS, Check, is_whole, list_of, shown
from tui_transformer.model.description import Embedding, Layer, Rotary, Stack, Transformer
from tui_transformer.model.families.bart import FIRST_PLACE, SUBLAYERS
from tui_transformer.model.families.decoder import DECODER_LAYER, DecoderConfig, decoder
from tui_transformer.model.families.rope import FULL, SLIDING, Rope
from tui_transformer.model.families.style import ALWAYS, Style
from tui_transformer.model.layers import NOT_DIVIDED, divided
from tui_transformer.model.weight_table import Part, WeightTable, halves_of_pairs, layer_parts, side_by_side
from tui_transformer.records import dataclass, replace

PLAIN = Style(
    positions="learned",
    norm="layer",
    gated=False,
    bias=ALWAYS,
    feed_forward_bias=ALWAYS,
)
"""GPT-2 (Radford et al. 2019, §2.3) and its relatives: layer norms, every bias, no gate, no groups."""

PLAIN_KEYS = {"hidden_act": "activation_function", "rms_norm_eps": "layer_norm_epsilon"}
SIZES = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "max_position_embeddings": "n_positions",
}
KEYS = {**PLAIN_KEYS, **SIZES, "intermediate_size": "n_inner"}
OTHER_NAMES = {key: field for field, key in SIZES.items()}


LAYER = "transformer.h.{}"
PARTS: Mapping[str, str | Part] = {
    "embedding.tokens": "transformer.wte",
    "embedding.positions": "transformer.wpe",
    **layer_parts(
        DECODER_LAYER,
        LAYER,
        norm="ln_1",
        **side_by_side("attn.c_attn", lambda config: (config.hidden_size,) * 3, axis=-1),
        output="attn.c_proj",
        feed_norm="ln_2",
        hidden="mlp.c_fc",
        down="mlp.c_proj",
    ),
    "decoder.norm": "transformer.ln_f",
    "output.logits": Part("lm_head", turned=True),
}


def gpt2_like(**parts: str | Part) -> WeightTable:
    """The table of GPT-2 but for some parts of its layers, in files whose matrices are out × in."""
    others = {**layer_parts(DECODER_LAYER, LAYER, **parts), "output.logits": "lm_head"}
    return WeightTable({**PARTS, **others}, prefix="transformer.")


@dataclass(frozen=True)
class Gpt2Config(DecoderConfig):
    """GPT-2."""

    model_type = "gpt2"
    style = PLAIN
    keys = KEYS
    other_names = OTHER_NAMES
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "add_cross_attention": False}
    weights = WeightTable(PARTS, prefix="transformer.", in_out=True)

    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False

    def layers(self) -> tuple[Layer, ...]:
        """Scores may be divided by the number of the layer too, or not at all."""
        layers = []
        for number, layer in enumerate(super().layers(), start=1):
            divisor = float(number) if self.scale_attn_by_inverse_layer_idx else 1.0
            if self.scale_attn_weights:
                scale = divided(self.head_width, divisor)
            else:
                scale = NOT_DIVIDED if divisor == 1.0 else Scale(1.0 / divisor, f"÷ {divisor:g}")
            layers.append(replace(layer, attention=replace(layer.attention, scale=scale)))
        return tuple(layers)


GptBigCodeConfig = decoder(
    "gpt_bigcode",
    PLAIN,
    keys=KEYS,
    other_names=OTHER_NAMES,
    fixed={**Gpt2Config.fixed, "multi_query": True, "scale_attn_weights": True},
    weights=gpt2_like(
        **side_by_side("attn.c_attn", lambda config: (config.hidden_size, config.head_width, config.head_width))
    ),
)
"""GPT-BigCode (Ben Allal et al. 2023), of which StarCoder is one: queries look at the same keys (Shazeer 2019)."""

GLOBAL, LOCAL = "global", "local"


@dataclass(frozen=True)
class GptNeoConfig(DecoderConfig):
    """GPT-Neo (Black et al. 2021): a window in some layers, scores that are not divided, a bias of the output alone.

    Attributes:
        attention_layers: The kind of every layer; files may say it as `attention_types`, kinds and how often.
    """

    model_type = "gpt_neo"
    style = replace(PLAIN, bias="", output_bias=ALWAYS, scale=NOT_DIVIDED)
    keys: ClassVar[Mapping[str, str]] = {
        **PLAIN_KEYS,
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "window": "window_size",
    }
    other_names: ClassVar[Mapping[str, str]] = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    checks: ClassVar[Mapping[str, Check]] = {"attention_layers": list_of(GLOBAL, LOCAL)}
    weights = gpt2_like(
        query="attn.attention.q_proj",
        key="attn.attention.k_proj",
        value="attn.attention.v_proj",
        output="attn.attention.out_proj",
    )

    attention_layers: tuple[str, ...] = (GLOBAL, LOCAL) * 12
    window: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.attention_layers) != self.num_hidden_layers:
            raise UsageError(f"attention_types names {len(self.attention_layers)} layers of {self.num_hidden_layers}")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
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
        return tuple(SLIDING if kind == LOCAL else FULL for kind in self.attention_layers)


def _layers(types: object) -> list[str]:
    """The kind of every layer, from lists of kinds and how often each is repeated."""
    layers: list[str] = []
    for pair in types if isinstance(types, list) else [None]:
        room = MOST_LAYERS - len(layers)
        match pair:
            case [list() as kinds, times] if is_whole(times, 1, MOST_LAYERS) and len(kinds) * times <= room:
                layers += map(str, kinds * times)
            case _:
                wrong = f"attention_types {shown(types)} is not a list of kinds of layers and how often they come"
                raise UsageError(wrong)
    return layers


IN_HALVES = halves_of_pairs(lambda config: config.rotary_dim)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""


@dataclass(frozen=True)
class GptJConfig(DecoderConfig):
    """GPT-J (Wang & Komatsuzaki 2021): both sublayers read one norm, a part of every head is turned in pairs."""

    model_type = "gptj"
    style = replace(PLAIN, positions="none", bias="", parallel="one norm", logits_bias=True)
    keys = KEYS
    other_names = OTHER_NAMES
    weights = gpt2_like(
        query=Part("attn.q_proj", IN_HALVES),
        key=Part("attn.k_proj", IN_HALVES),
        value="attn.v_proj",
        output="attn.out_proj",
        hidden="mlp.fc_in",
        down="mlp.fc_out",
    )

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
        return self.max_length

    def rotary(self, kind: str) -> Rotary:
        return Rope().rotary(self.rotary_dim)


@dataclass(frozen=True)
class OptConfig(DecoderConfig):
    """OPT (Zhang et al. 2022): positions from row 2 of a table; one size is post-norm and narrow at both ends.

    ε is not a setting.
    """

    model_type = "opt"
    style = replace(PLAIN, bias="enable_bias", feed_forward_bias="enable_bias")
    keys: ClassVar[Mapping[str, str]] = {
        **PLAIN_KEYS,
        "intermediate_size": "ffn_dim",
        "without_last_norm": "_remove_final_layer_norm",
    }
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "layer_norm_elementwise_affine": True}
    of_the_file = frozenset({"rms_norm_eps"})
    weights = WeightTable(
        {
            "embedding.tokens": "model.decoder.embed_tokens",
            "embedding.projected": "model.decoder.project_in",
            "embedding.positions": "model.decoder.embed_positions",
            **layer_parts(DECODER_LAYER, "model.decoder.layers.{}", **SUBLAYERS),
            "decoder.norm": "model.decoder.final_layer_norm",
            "decoder.projected": "model.decoder.project_out",
            "output.logits": "lm_head",
        },
        prefix="model.",
    )

    do_layer_norm_before: bool = True
    without_last_norm: bool = False
    word_embed_proj_dim: int | None = None
    enable_bias: bool = True

    @property
    def end_is_padding(self) -> bool:
        """A pad ID at the end is read: texts for OPT may end with it, and no token before sees it.

        A classifier takes the last token that is none, as the published code does.
        """
        return self.labels is not None

    @property
    def narrow(self) -> int:
        """Width of the embedding table; 0 where it is the model's."""
        width = self.word_embed_proj_dim or self.hidden_size
        return 0 if width == self.hidden_size else width

    def places(self, rows: Host) -> Host:
        return counted(rows) + FIRST_PLACE

    def embedding(self) -> Embedding:
        rows = self.max_position_embeddings + FIRST_PLACE
        return Embedding(width=self.narrow, projected_first=True, positions="learned", max_length=rows)

    def layers(self) -> tuple[Layer, ...]:
        place = "pre" if self.do_layer_norm_before else "post"
        return tuple(replace(layer, place=place) for layer in super().layers())

    def describe(self) -> Transformer:
        """A norm after the last layer, unless layers end with one or the file goes without; what leaves is narrow."""
        norm = self.norm() if self.do_layer_norm_before and not self.without_last_norm else None
        return replace(super().describe(), decoder=Stack(self.embedding(), self.layers(), norm, projected=self.narrow))
