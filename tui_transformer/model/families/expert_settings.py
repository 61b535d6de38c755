"""Settings of experts in `config.json`, and where their weights are: what the families with a router share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, size_up_to, truth
from tui_transformer.model.description import Experts, Layer
from tui_transformer.model.families.llama import LAYER
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.families.windowed import WindowedConfig

MOST_EXPERTS = 4096
EXPERT_CHECKS: Mapping[str, Check] = {"num_experts": size_up_to(MOST_EXPERTS), "num_experts_per_tok": a_size}

FEED_FORWARD = "decoder.{}.feed_forward"
EXPERT = f"{FEED_FORWARD}.experts.{{}}"
ROUTED_PARTS: Mapping[str, str] = {
    f"{FEED_FORWARD}.router": f"{LAYER}.mlp.gate",
    f"{EXPERT}.hidden": f"{LAYER}.mlp.experts.{{}}.up_proj",
    f"{EXPERT}.gate": f"{LAYER}.mlp.experts.{{}}.gate_proj",
    f"{EXPERT}.output": f"{LAYER}.mlp.experts.{{}}.down_proj",
}


def check_chosen(experts: int, chosen: int) -> None:
    """Raise UsageError where a token would choose more experts than there are."""
    if chosen > experts:
        raise UsageError(f"num_experts_per_tok {shown(chosen)} is more than the {experts} experts")


def _layer_numbers(key: str, value: object) -> None:
    """Whole numbers from 0."""
    if not isinstance(value, tuple) or not all(type(each) is int and each >= 0 for each in value):
        raise UsageError(f"{key} {shown(value)} is not a list of numbers of layers")


@dataclass(frozen=True)
class SparseConfig(WindowedConfig):
    """The keys of models in which some layers have experts and others one feed-forward layer (Qwen's)."""

    checks: ClassVar[Mapping[str, Check]] = {
        **WindowedConfig.checks,
        **EXPERT_CHECKS,
        **dict.fromkeys(("decoder_sparse_step", "moe_intermediate_size"), a_size),
        "norm_topk_prob": truth,
        "use_sliding_window": truth,
        "mlp_only_layers": _layer_numbers,
    }
    other_names: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}

    vocab_size: int = 151936
    hidden_size: int = 2048
    num_hidden_layers: int = 24
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 768
    num_experts: int = 128
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = False
    mlp_only_layers: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chosen(self.num_experts, self.num_experts_per_tok)
        if self.use_sliding_window:
            a_size("sliding_window", self.sliding_window)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        dense = raw.get("mlp_only_layers")
        changes = {"mlp_only_layers": tuple(dense) if isinstance(dense, list) else dense or ()}
        if raw.get("sliding_window") == 0:  # how some files say that there is none
            changes["sliding_window"] = None
        return super().from_json({**raw, **changes})

    @property
    def window(self) -> int | None:
        """How many keys a query sees, where windows are used."""
        return self.sliding_window if self.use_sliding_window else None

    def layers(self) -> tuple[Layer, ...]:
        """With experts, or one feed-forward layer in their place."""
        layers = enumerate(super().layers())
        return tuple(replace(layer, feed_forward=self.experts()) if self.routed(i) else layer for i, layer in layers)

    def experts(self) -> Experts:
        """The experts of a layer that has some."""
        one = replace(self.feed_forward(), width=self.moe_intermediate_size)
        return Experts(self.num_experts, self.num_experts_per_tok, one, among_chosen=self.norm_topk_prob)

    def routed(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return layer not in self.mlp_only_layers and (layer + 1) % self.decoder_sparse_step == 0
