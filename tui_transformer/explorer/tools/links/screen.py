"""The strongest links: which token looks at which, in which head, as a list."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from tui_transformer.analysis.attentions import Attention, Reader, attentions
from tui_transformer.analysis.rollout import Link, Wanted, links_of, strongest
from tui_transformer.analysis.tokens import NOTHING
from tui_transformer.explorer.shell.actions.tools import LINKS
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.links.lines import LinkLines
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface, bar_style

TOP = 200
"""Links that are listed."""

COST = 4
"""Operations that it takes to look at a weight."""

Layer = tuple[Attention, Reader, Wanted]
"""A layer to look through, and for what."""


def open_from(port: Port) -> None:
    """The links of all heads, or of the head that is shown; says so where the model has none."""
    if not attentions(port.session.trace.program):
        port.say("this model has no attention")
        return
    port.open(LinksScreen(port))


class LinksScreen(Overview):
    """The largest weights of all heads, of a layer or of a head."""

    ACTIONS = LINKS
    DEFAULT_CSS = """
    LinksScreen {
        #links-columns { height: 1; color: $foreground 65%; }
        #links { height: 1fr; }
    }
    """
    HELP_TOPIC, KIND = "links", "links"
    pieces: Pieces[Layer, Sequence[Link]]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.everything = attentions(self.session.trace.program)
        stop = port.position.stop
        self.at = next((step for step in self.everything if stop.startswith(step.name.rpartition(".")[0] + ".")), None)
        self.head = port.position.place.head
        self.scope, self.itself, self.hidden = "all heads", True, NOTHING
        self.links: tuple[Link, ...] = ()
        self.waiting: list[Attention] = []
        self.lines = LinkLines(self.everything, self.session.labels)
        self.pieces = Pieces(self.requests, self.KIND, self._following, self._cost, self._look, self._take)

    def content(self) -> ComposeResult:
        """Names of the columns, and the list."""
        yield Static(id="links-columns", markup=False)
        yield LineList(id="links")

    def on_mount(self) -> None:
        """Look through the layers, one after the other."""
        self.query_one(LineList).focus()
        self.begin()

    # Looking

    @property
    def scopes(self) -> Sequence[str]:
        """Names of the heads among which links can be searched."""
        return ("all heads", "layer", "head") if self.at is not None else ("all heads",)

    @property
    def steps(self) -> tuple[Attention, ...]:
        """The attentions that links are searched in."""
        return self.everything if self.at is None or self.scope == "all heads" else (self.at,)

    @property
    def wanted(self) -> Wanted:
        """Which links."""
        return Wanted(TOP, self.head if self.scope == "head" else None, self.itself)

    def begin(self) -> None:
        """Look anew."""
        self.links, self.waiting = (), list(self.steps)
        self._show_list()
        self.pieces.again()

    def _following(self) -> Layer | None:
        if not self.waiting:
            return None
        return self.waiting.pop(0), Reader(self.session.model.vocabulary, self.hidden), self.wanted

    def _cost(self, layer: Layer) -> int:
        step, *_ = layer
        return self.session.trace.pending([step.name]) + COST * step.heads * step.queries.size * step.keys.size

    def _look(self, layer: Layer, task: Task) -> Sequence[Link]:
        return links_of(self.session.trace, *layer, task.report)

    def _take(self, more: Sequence[Link]) -> None:
        self.links = strongest((*self.links, *more), TOP)
        self._show_list()

    # What is said

    def _show_list(self) -> None:
        self.query_one(LineList).show(len(self.links), self._line)

    def show_lines(self) -> None:
        """The names of the columns, too."""
        if self.is_mounted:
            self.query_one("#links-columns", Static).update(self.lines.header(self.size.width), layout=False)
        super().show_lines()

    def _line(self, index: int) -> Text:
        return self.lines.line(self.links[index], self.size.width, bar_style(Surface.of(self.app)))

    def heading(self) -> str:
        """Of what."""
        at = self.at
        names = {"all heads": "all heads"}
        if at is not None:
            names |= {"layer": f"layer {at.layer}, {at.group}", "head": f"layer {at.layer}, head {self.head}"}
        return f"Strongest links · {names[self.scope]}"

    def note(self) -> str:
        """Tokens and links that take no part, in words."""
        parts = (self.hidden.text, "" if self.itself else "links to the token itself left out")
        return " · ".join([*(part for part in parts if part), f"the {len(self.links):,} strongest"])

    def progress(self) -> str:
        """How many layers were looked through."""
        return f"{len(self.steps) - len(self.waiting)} of {len(self.steps)} layers"

    def detail(self) -> tuple[str, str]:
        """The link under the cursor."""
        at = self.query_one(LineList).cursor
        if at is None:
            return ("no link", "every query may look at one key only, or is hidden") if not self.waiting else ("", "")
        link = self.links[at]
        who, whom = self.lines.words(link)
        return (
            f"query {who} gives {link.weight:.4f} of its attention to key {whom}",
            f"layer {link.layer} · head {link.head} · {link.step}[{link.head}, {link.query}, {link.key}]",
        )

    def left_out(self) -> Collection[str]:
        """Without a layer that is shown there are all heads alone."""
        return () if len(self.scopes) > 1 else ("kind",)

    # What keys do

    def action_arcs(self) -> None:
        """The same as lines between words."""
        from tui_transformer.explorer.tools.arcs.screen import screen_of

        screen = screen_of(self.port, "links")
        if screen is not None:
            self.open(screen)

    def action_scope(self) -> None:
        """All heads, the layer, the head."""
        self.scope = self.scopes[(self.scopes.index(self.scope) + 1) % len(self.scopes)]
        self.begin()

    def action_itself(self) -> None:
        """With or without links from a token to itself."""
        self.itself = not self.itself
        self.begin()

    def action_hide(self, which: str) -> None:
        """Hide tokens, or show them again: look anew."""
        self.hidden = self.hidden.turned(which)
        self.begin()

    @on(LineList.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        link = self.links[event.index]
        leave_to(self, link.step, link.head, link.query, link.key)
