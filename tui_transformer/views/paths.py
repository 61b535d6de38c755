"""Paths as a matrix: senders × receivers, what each path changes."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.analysis.nodes import Node
from tui_transformer.analysis.paths import By
from tui_transformer.engine.backend import Host
from tui_transformer.views.view import Axis, View, window_of


def path_view(senders: Sequence[Node], receivers: Sequence[Node], changes: Host, by: By, metric: str) -> View:
    """Changes of a metric, senders × receivers, NaN where there is no path."""
    several = len({part.place.partition(".")[0] for node in senders for part in node.parts}) > 1

    def label(node: Node) -> str:
        """As short as a heat map needs, what tells most in front: `1.3 head`, `0.2 cross key`."""
        if len(node.parts) > 1 or node.layer is None:
            return node.name
        place, layer = node.parts[0].place, "" if node.layer < 0 else str(node.layer)
        number = layer if node.head is None else f"{layer}.{node.head}"
        which = "cross" if "cross" in place else place[:3] if several else ""
        return " ".join(filter(None, (number, which, node.parts[0].kind)))

    return View(
        f"paths by {by}",
        f"change of {metric} by each path",
        Axis("sender", len(senders), lambda i: label(senders[i])),
        Axis("receiver", len(receivers), lambda j: label(receivers[j])),
        "diverging",
        window_of(changes),
        absent="no path",
    )
