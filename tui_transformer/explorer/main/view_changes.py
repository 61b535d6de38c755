"""Changes of the view: what is drawn beside the values, hidden tokens, scale, chart, temperature."""

from __future__ import annotations

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.panes.text import TEMPERATURES, WORDS
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.state.overlay import next_shown


class ViewChanges:
    """Changes of the view state, each shown at once."""

    def __init__(self, explored: Exploration, presenter: Presenter, port: Port) -> None:
        """Change how a presenter shows what is explored."""
        self._explored, self._presenter, self._port = explored, presenter, port

    def next_shown(self) -> None:
        """Draw the values and what is beside them; then one of them alone, or the difference."""
        kind = self._explored.session.overlay.kind
        if kind == "nothing":
            self._port.say(self._port.hint("there is nothing beside: {backward} shows gradients, {compare} compares"))
            return
        panes = self._presenter.panes
        self._explored.change_view(wanted=next_shown(kind, panes.shown, wide=panes.wide))
        self._presenter.show_position()

    def turn_whole(self) -> None:
        """Show the whole above the step, or the lists of steps and heads instead."""
        panes = self._presenter.panes
        if not panes.room_for_whole:
            self._port.say("beside the card there is no room for the whole: leave the tour first")
            return
        self._explored.change_view(whole=not panes.whole)
        panes.fit(panes.screen.size)
        self._presenter.show_position()
        panes.focus("whole" if panes.whole else "matrix")

    def zoom(self) -> None:
        """Give the pane that has the keys the whole terminal, or all panes their places again."""
        panes, view = self._presenter.panes, self._explored.view
        panes.zoom(view.active if view.zoom is None else None)
        self._presenter.show_position()

    def next_chart(self) -> None:
        """Draw the next chart of those that fit the step."""
        self._explored.change_view(chart=self._explored.view.chart + 1)
        self._presenter.details.show_chart()

    def share_scale(self) -> None:
        """Use one scale for all layers, or one a step."""
        shared = not self._explored.view.shared_scale
        self._explored.change_view(shared_scale=shared)
        self._port.say("one scale for this step in all layers" if shared else "a scale for each step")
        self._presenter.show_position()

    def hide(self, which: str) -> None:
        """Leave special tokens, or the first, out of attention weights; the rest of a row sums to 1 again."""
        hidden = self._explored.view.hidden.turned(which)
        self._explored.change_view(hidden=hidden)
        self._port.say(hidden.text or "no token is hidden")
        self._presenter.show_position()

    def warm(self, steps: int) -> None:
        """List the most likely words at a higher or lower temperature."""
        place = TEMPERATURES.index(self._explored.view.temperature) + steps
        if 0 <= place < len(TEMPERATURES):
            self._explored.change_view(temperature=TEMPERATURES[place])
            if self._explored.position.stop in WORDS:
                self._presenter.show_position()
