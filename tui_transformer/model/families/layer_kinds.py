"""`layer_types` of a `config.json`: which layers see all keys and which a window, and how each kind is turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.families.rope import Rope, read_rope

FULL, SLIDING = "full_attention", "sliding_attention"


def layer_kinds(key: str, value: object) -> None:
    """Names of kinds of attention, one a layer."""
    if not isinstance(value, tuple) or not set(value) <= {FULL, SLIDING}:
        raise UsageError(f"{key} {shown(value)} is not a list of {FULL} and {SLIDING}")


def check_layer_kinds(kinds: tuple[str, ...] | None, layers: int, window: int | None) -> None:
    """Raise UsageError where `layer_types` names other than all layers, or windows where there are none."""
    if kinds is not None and len(kinds) != layers:
        raise UsageError(f"layer_types names {len(kinds)} layers of {layers}")
    if window is None and SLIDING in (kinds or ()):
        raise UsageError(f"layer_types says {SLIDING}, but there is no sliding_window in use")


@dataclass(frozen=True)
class LayerRopes:
    """The tables of `rope_parameters`, one for every kind of layer.

    Attributes:
        full_attention: Of layers that see all keys.
        sliding_attention: Of layers with a window.
    """

    full_attention: Rope = field(default_factory=Rope)
    sliding_attention: Rope = field(default_factory=Rope)


def read_layer_ropes(
    raw: Mapping[str, Any], theta: float, sliding_theta: float, sliding_key: str, context: int
) -> LayerRopes:
    """The rotary positions of both kinds of layers in a `config.json`.

    Old files have θ and `rope_scaling` of the full layers beside the other settings; none of it holds for those with a
    window, whose θ is there under a key of its own, if at all.

    Args:
        raw: The JSON object.
        theta: θ of the full layers where the file says nothing.
        sliding_theta: The same of those with a window.
        sliding_key: What θ of those with a window is called in old files.
        context: `max_position_embeddings` where the file says nothing.

    Raises:
        UsageError: A kind of scaling that is not implemented, or one without its numbers.
    """
    tables = raw.get("rope_parameters") or {}
    if not isinstance(tables, Mapping) or not set(tables) <= {FULL, SLIDING}:
        raise UsageError(f"rope_parameters {shown(tables)} is not a table for each of {FULL} and {SLIDING}")
    plain = {name: value for name, value in raw.items() if name != "rope_scaling"}
    ropes = []
    for kind, key, default, scaling in (
        (FULL, "rope_theta", theta, raw.get("rope_scaling") or {}),
        (SLIDING, sliding_key, sliding_theta, {}),
    ):
        table = tables.get(kind) or {}
        if not isinstance(table, Mapping) or not isinstance(scaling, Mapping):
            raise UsageError(f"rope_parameters of {kind} {shown(table)} is not a table of numbers")
        given = {**plain, "rope_parameters": {**table, **scaling}}
        ropes.append(read_rope(given, theta=(key,), default=default, context=context))
    return LayerRopes(*ropes)
