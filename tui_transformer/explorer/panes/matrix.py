"""The matrix of the current step, with its legend."""

from __future__ import annotations

import numpy as np
from textual.app import ComposeResult
from textual.containers import Vertical

from tui_transformer.explorer.scene import Scene
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.text.display import visible


class MatrixPane(Vertical):
    """Heat map above, legend below."""

    def compose(self) -> ComposeResult:
        """Heat map and legend."""
        yield HeatMap(id="cells")
        yield Legend(id="legend")

    def show_scene(self, scene: Scene, title: str, note: str) -> None:
        """Show a matrix with the cursor at the scene's place."""
        self.border_title = visible(title)
        cells = self.query_one(HeatMap)
        cells.show(scene.view, scene.scale, scene.tile)
        cells.cursor = scene.place.row, scene.place.column
        masked = not bool(np.isfinite(scene.tile.values).all())
        self.query_one(Legend).show(scene.scale, note=note, masked=masked)
