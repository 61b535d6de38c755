"""GPT-BigCode (Ben Allal et al. 2023), of which StarCoder is one: GPT-2 with one key and value head for all queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.model.description import Attention
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.gpt2 import LAYER, PARTS, Gpt2Config
from tui_transformer.model.families.plain_decoder import PlainDecoderConfig
from tui_transformer.model.weight_table import Part, WeightTable, cut


@dataclass(frozen=True)
class GptBigCodeConfig(PlainDecoderConfig):
    """The keys of GPT-BigCode's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt_bigcode"
    title: ClassVar[str] = "GPT-BigCode"
    keys: ClassVar[Mapping[str, str]] = Gpt2Config.keys
    other_names: ClassVar[Mapping[str, str]] = Gpt2Config.other_names
    fixed: ClassVar[Mapping[str, Any]] = {
        **PlainDecoderConfig.fixed,
        "add_cross_attention": False,
        "multi_query": True,
        "scale_attn_weights": True,
    }

    activation_function: str = "gelu_pytorch_tanh"

    def attention(self) -> Attention:
        """Queries of all heads look at the same keys (Shazeer 2019)."""
        return replace(super().attention(), kv_heads=1)

    @property
    def projected(self) -> tuple[int, int, int]:
        """Rows of query, key and value in the matrix that holds all three."""
        return self.hidden_size, self.head_width, self.head_width


def projected(place: int) -> Part:
    """Query (0), key (1) or value (2)."""
    return Part(f"{LAYER}.attn.c_attn", cut(place, lambda config: config.projected))


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query": projected(0),
        "decoder.{}.self_attention.key": projected(1),
        "decoder.{}.self_attention.value": projected(2),
    },
    prefix="transformer.",
)
GPT_BIGCODE = decoder_family(GptBigCodeConfig, WEIGHTS)
