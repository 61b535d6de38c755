"""`layer_types` of a `config.json`: which layers see all keys and which a window of them."""

from __future__ import annotations

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown

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
