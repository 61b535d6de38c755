"""Mistakes that people make, by subject: changes of the program, tried between what agrees and what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tui_transformer.diagnosis.causes import attention, norms, positions, weights
from tui_transformer.diagnosis.causes.cause import Cause, Segment

Causes = Callable[[Segment], Iterable[Cause]]
"""The causes of a subject that the steps of a segment may have."""

CAUSES: tuple[Causes, ...] = (
    attention.scale_causes,
    attention.mask_causes,
    attention.window_causes,
    attention.softmax_causes,
    attention.sink_causes,
    weights.linear_causes,
    weights.logits_causes,
    weights.fused_causes,
    weights.multiplier_causes,
    attention.split_causes,
    attention.shared_causes,
    attention.transposed_causes,
    attention.index_causes,
    attention.read_causes,
    norms.cross_causes,
    positions.rotary_causes,
    positions.position_causes,
    positions.embedding_causes,
    norms.norm_causes,
    norms.norm_place_causes,
    norms.head_norm_causes,
    weights.layer_causes,
    norms.parallel_causes,
    norms.residual_causes,
    weights.activation_causes,
    weights.gate_causes,
    weights.cap_causes,
    positions.distance_causes,
    weights.expert_causes,
    weights.label_causes,
    weights.exchange_causes,
    weights.norm_exchange_causes,
    norms.centred_causes,
)
"""In the order in which they are tried; of several that fit alike, the first is named."""

__all__ = ["CAUSES", "Cause", "Causes"]
