"""GPT-Neo (Black et al. 2021): GPT-2 with a window in some of its layers, and scores that are not divided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown
from tui_transformer.model.config import MOST_LAYERS
from tui_transformer.model.description import Attention
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.gpt2 import LAYER, PARTS
from tui_transformer.model.families.plain_decoder import PlainDecoderConfig
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.layers import NOT_DIVIDED
from tui_transformer.model.weight_table import WeightTable

GLOBAL, LOCAL = "global", "local"


def kinds(key: str, value: object) -> None:
    """Names of kinds of attention, one a layer."""
    if not isinstance(value, tuple) or not set(value) <= {GLOBAL, LOCAL}:
        raise UsageError(f"{key} {shown(value)} is not a list of {GLOBAL} and {LOCAL}")


@dataclass(frozen=True)
class GptNeoConfig(PlainDecoderConfig):
    """The keys of GPT-Neo's `config.json` that change what is computed.

    Attributes:
        attention_layers: The kind of every layer; files may say it as `attention_types`, kinds and how often.
    """

    model_type: ClassVar[str] = "gpt_neo"
    title: ClassVar[str] = "GPT-Neo"
    keys: ClassVar[Mapping[str, str]] = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}
    other_names: ClassVar[Mapping[str, str]] = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    checks: ClassVar[Mapping[str, Check]] = {
        **PlainDecoderConfig.checks,
        "window_size": a_size,
        "attention_layers": kinds,
    }

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

    def attentions(self) -> tuple[Attention, ...]:
        """With a bias of the output alone; scores are not divided, and the local ones see a window."""
        attention = replace(self.attention(), bias=frozenset({"output"}), scale=NOT_DIVIDED)
        local = replace(attention, window=self.window_size)
        return tuple(local if kind == LOCAL else attention for kind in self.attention_layers)


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


ATTENTION = f"{LAYER}.attn.attention"
WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query": f"{ATTENTION}.q_proj",
        "decoder.{}.self_attention.key": f"{ATTENTION}.k_proj",
        "decoder.{}.self_attention.value": f"{ATTENTION}.v_proj",
        "decoder.{}.self_attention.output": f"{ATTENTION}.out_proj",
        "output.logits": "lm_head",
    },
    prefix="transformer.",
)
GPT_NEO = decoder_family(GptNeoConfig, WEIGHTS)
