"""GPT-Neo (Black et al. 2021): GPT-2 with a window in some of its layers, and scores that are not divided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, small
from tui_transformer.model.config import MOST_LAYERS
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    FEED_FORWARD_MATRICES,
    Attention,
    Embedding,
    FeedForward,
    Layer,
    Norm,
)
from tui_transformer.model.families.decoder_only import DecoderConfig, decoder_family
from tui_transformer.model.families.settings import a_size, an_activation, check_divides, layers_count, optional
from tui_transformer.model.layers import NOT_DIVIDED
from tui_transformer.model.weight_table import WeightTable

GLOBAL, LOCAL = "global", "local"


def kinds(key: str, value: object) -> None:
    """Names of kinds of attention, one a layer."""
    if not isinstance(value, tuple) or not set(value) <= {GLOBAL, LOCAL}:
        raise UsageError(f"{key} {shown(value)} is not a list of {GLOBAL} and {LOCAL}")


@dataclass(frozen=True)
class GptNeoConfig(DecoderConfig):
    """The keys of GPT-Neo's `config.json` that change what is computed.

    Attributes:
        attention_layers: The kind of every layer; files may say it as `attention_types`, kinds and how often.
    """

    model_type: ClassVar[str] = "gpt_neo"
    title: ClassVar[str] = "GPT-Neo"
    other_names: ClassVar[Mapping[str, str]] = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("max_position_embeddings", "hidden_size", "num_heads", "window_size"), a_size),
        "num_layers": layers_count,
        "attention_layers": kinds,
        "intermediate_size": optional(a_size),
        "activation_function": an_activation,
        "layer_norm_epsilon": small,
    }

    vocab_size: int = 50257
    tie_word_embeddings: bool = True
    max_position_embeddings: int = 2048
    hidden_size: int = 2048
    num_layers: int = 24
    attention_layers: tuple[str, ...] = (GLOBAL, LOCAL) * 12
    num_heads: int = 16
    intermediate_size: int | None = None
    window_size: int = 256
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("hidden_size", self.hidden_size, "num_heads", self.num_heads)
        if len(self.attention_layers) != self.num_layers:
            raise UsageError(f"attention_types names {len(self.attention_layers)} layers of {self.num_layers}")

    @property
    def max_length(self) -> int:
        """Rows of the table of positions."""
        return self.max_position_embeddings

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.hidden_size

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        types = raw.get("attention_types")
        found = raw.get("attention_layers") if types is None else _layers(types)
        given = {key: value for key, value in raw.items() if key != "attention_layers"}
        named = {} if found is None else {"attention_layers": tuple(found) if isinstance(found, list) else found}
        config = super().from_json(given | named)
        if raw.get("attention_layers", found) != found:
            said = shown(raw["attention_layers"])
            raise UsageError(f"attention_layers {said} are not those of attention_types {shown(types)}")
        return config

    def final_norm(self) -> Norm:
        """Layer norm."""
        return Norm(self.layer_norm_epsilon)

    def embedding(self) -> Embedding:
        """Token and learned position."""
        return Embedding(positions="learned", max_length=self.max_position_embeddings)

    def layers(self) -> tuple[Layer, ...]:
        """Pre-norm layers; the attention has a bias of the output alone."""
        activation = ACTIVATION_NAMES[self.activation_function]
        width = self.intermediate_size or 4 * self.hidden_size
        feed_forward = FeedForward(width, activation, bias=FEED_FORWARD_MATRICES)
        return tuple(
            Layer(self._attention(kind), feed_forward, self.final_norm(), "pre") for kind in self.attention_layers
        )

    def _attention(self, kind: str) -> Attention:
        return Attention(
            self.num_heads,
            self.hidden_size // self.num_heads,
            bias=frozenset({"output"}),
            scale=NOT_DIVIDED,
            causal=True,
            window=self.window_size if kind == LOCAL else None,
        )


def _layers(types: object) -> list[str]:
    """The kind of every layer, from lists of kinds and how often each is repeated."""
    wrong = UsageError(f"attention_types {shown(types)} is not a list of kinds of layers and how often they come")
    found: list[str] = []
    for pair in types if isinstance(types, list) else [None]:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list) and _is_count(pair[1])):
            raise wrong
        found += map(str, pair[0] * pair[1])
        if len(found) > MOST_LAYERS:
            raise wrong
    return found


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_LAYERS


LAYER = "transformer.h.{}"
ATTENTION = f"{LAYER}.attn.attention"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": "transformer.wte",
        "embedding.positions": "transformer.wpe",
        "decoder.{}.self_attention.norm": f"{LAYER}.ln_1",
        "decoder.{}.self_attention.query": f"{ATTENTION}.q_proj",
        "decoder.{}.self_attention.key": f"{ATTENTION}.k_proj",
        "decoder.{}.self_attention.value": f"{ATTENTION}.v_proj",
        "decoder.{}.self_attention.output": f"{ATTENTION}.out_proj",
        "decoder.{}.feed_forward.norm": f"{LAYER}.ln_2",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.c_fc",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.c_proj",
        "decoder.norm": "transformer.ln_f",
        "output.logits": "lm_head",
    },
    prefix="transformer.",
)
GPT_NEO = decoder_family(GptNeoConfig, WEIGHTS)
