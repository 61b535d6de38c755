"""StarCoder 2 (Lozhkov et al. 2024): layer norms, biases everywhere, an ungated feed-forward layer, grouped keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.settings import a_size, optional
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class Starcoder2Config(GroupedConfig):
    """The keys of StarCoder 2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "starcoder2"
    title: ClassVar[str] = "StarCoder 2"
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_epsilon"}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"use_bias": ATTENTION_MATRICES}
    feed_forward_bias: ClassVar[str] = "use_bias"
    gated: ClassVar[bool] = False
    norm_kind: ClassVar[str] = "layer"
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        "use_bias": truth,
        "sliding_window": optional(a_size),
    }

    vocab_size: int = 49152
    tie_word_embeddings: bool = True
    hidden_size: int = 3072
    intermediate_size: int = 12288
    num_hidden_layers: int = 30
    num_attention_heads: int = 24
    num_key_value_heads: int | None = 2
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    use_bias: bool = True
    sliding_window: int | None = None

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The same window in every layer."""
        return (self.sliding_window,) * self.num_hidden_layers


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.c_fc",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.c_proj",
    },
    prefix="model.",
)
STARCODER2 = decoder_family(Starcoder2Config, WEIGHTS)
