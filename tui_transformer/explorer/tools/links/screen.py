"""The strongest links: which token looks at which, in which head, as a list."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tui_transformer.analysis.attention_rows import Reader
from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.analysis.links import Link, Wanted, links_of, strongest
from tui_transformer.explorer.shell.actions import LINKS
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.overview import Hiding
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface, bar_color
from tui_transformer.text.display import fit

TOP = 200
"""Links that are listed."""

COST = 4
"""Operations that it takes to look at a weight."""

BAR = 10
WORD, SHORT_WORD, ROOMY = 16, 10, 80
"""Columns of a token, and those on a screen that is narrower than the last."""


def open_from(port: Port) -> None:
    """The links of all heads, or of the head that is shown; says so where the model has none."""
    if not attentions(port.session.trace.program):
        port.say("this model has no attention")
        return
    port.open(LinksScreen(port))


class LinksScreen(Hiding):
    """The largest weights of all heads, of a layer or of a head."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LINKS)
    ACTIONS = LINKS
    DEFAULT_CSS = """
    LinksScreen {
        #links-columns { height: 1; color: $foreground 65%; }
        #links { height: 1fr; }
    }
    """
    HELP_TOPIC, KIND = "links", "links"

    def __init__(self, port: Port) -> None:
        """Begin with all heads."""
        super().__init__(port)
        self.everything = attentions(self.session.trace.program)
        stop = port.position.stop
        self.at = next((step for step in self.everything if stop.startswith(step.name.rpartition(".")[0] + ".")), None)
        self.head = port.position.place.head
        self.scope, self.itself = "all heads", True
        self.found: tuple[Link, ...] = ()
        self.waiting: list[Attention] = []

    def content(self) -> ComposeResult:
        """What the columns are, and the list."""
        yield Static(id="links-columns", markup=False)
        yield LineList(id="links")

    def on_mount(self) -> None:
        """Look through the layers, one after the other."""
        self.query_one(LineList).focus()
        self.begin()

    # Looking

    @property
    def scopes(self) -> Sequence[str]:
        """What can be looked through."""
        return ("all heads", "layer", "head") if self.at is not None else ("all heads",)

    @property
    def steps(self) -> tuple[Attention, ...]:
        """What is looked through."""
        return self.everything if self.at is None or self.scope == "all heads" else (self.at,)

    @property
    def wanted(self) -> Wanted:
        """Which links."""
        return Wanted(TOP, self.head if self.scope == "head" else None, self.itself)

    def begin(self) -> None:
        """Look anew."""
        self.worker.cancel(self.KIND)
        self.found, self.waiting = (), list(self.steps)
        self._show_list()
        self.call_later(self._look_on)

    def _look_on(self) -> None:
        """Look through the next layer."""
        if not self.waiting or not self.is_mounted:
            self.show_lines()
            return
        step = self.waiting.pop(0)
        cost = self.session.trace.pending([step.name]) + COST * step.heads * step.queries.size * step.keys.size
        reader = Reader(self.session.model.vocabulary, self.hidden)
        self.ask(self.KIND, cost, partial(self._look, step, reader, self.wanted), self._take)
        self.show_lines()

    def _look(self, step: Attention, reader: Reader, wanted: Wanted, task: Task) -> Sequence[Link]:
        return links_of(self.session.trace, step, reader, wanted, task.report)

    def _take(self, more: Sequence[Link]) -> None:
        self.found = strongest((*self.found, *more), TOP)
        self._show_list()
        self.call_later(self._look_on)

    # What is said

    def _show_list(self) -> None:
        self.query_one(LineList).show(len(self.found), self._line)

    def show_lines(self) -> None:
        """The names of the columns, too."""
        if self.is_mounted:
            columns = f" {'weight':<{BAR + 6}}  {'head':<{self._name_width}} {'query':>{self._word_width}} → key"
            self.query_one("#links-columns", Static).update(columns, layout=False)
        super().show_lines()

    @property
    def _word_width(self) -> int:
        return WORD if self.size.width >= ROOMY else SHORT_WORD

    @property
    def _name_width(self) -> int:
        """Of the names of heads."""
        return max(len(_head_name(step, step.heads - 1, several=self._several)) for step in self.everything)

    @property
    def _several(self) -> bool:
        """Whether the stack and kind of attention have to be said."""
        return len({step.group for step in self.everything}) > 1

    def _line(self, index: int) -> Text:
        """Weight, bar, layer and head, and the two tokens."""
        link = self.found[index]
        step = self._step(link)
        words = self._word(step, link.query, own=True), self._word(step, link.key)
        line = Text(f" {link.weight:.3f} ", no_wrap=True)
        line.append(f"{'━' * max(round(link.weight * BAR), 1):<{BAR}}", self._bar)
        name, width = _head_name(step, link.head, several=self._several), self._word_width
        return line.append(f"  {name:<{self._name_width}} {fit(words[0], width, 'right')} → {fit(words[1], width)}")

    @property
    def _bar(self) -> Style:
        """The colour of bars, where there are colours."""
        surface = Surface.of(self.app)
        return Style() if surface.depth == "none" else Style(color=bar_color(surface))

    def _step(self, link: Link) -> Attention:
        return next(step for step in self.everything if step.name == link.step)

    def _word(self, step: Attention, index: int, *, own: bool = False) -> str:
        """A token with its place."""
        axis = step.queries if own else step.keys
        label = self.session.labels.of(axis)(index)
        return f"{label} {index}" if label != str(index) else label

    def heading(self) -> str:
        """Of what."""
        at = self.at
        names = {"all heads": "all heads"}
        if at is not None:
            names |= {"layer": f"layer {at.layer}, {at.group}", "head": f"layer {at.layer}, head {self.head}"}
        return f"Strongest links · {names[self.scope]}"

    def note(self) -> str:
        """What takes no part."""
        parts = (self.hidden.text, "" if self.itself else "links to the token itself left out")
        return " · ".join([*(part for part in parts if part), f"the {len(self.found):,} strongest"])

    def progress(self) -> str:
        """How many layers were looked through."""
        return f"{len(self.steps) - len(self.waiting)} of {len(self.steps)} layers"

    def detail(self) -> tuple[str, str]:
        """The link under the cursor."""
        at = self.query_one(LineList).cursor
        if at is None:
            return ("no link", "every query may look at one key only, or is hidden") if not self.waiting else ("", "")
        link = self.found[at]
        step = self._step(link)
        who, whom = self._word(step, link.query, own=True), self._word(step, link.key)
        return (
            f"query {who} gives {link.weight:.4f} of its attention to key {whom}",
            f"layer {link.layer} · head {link.head} · {link.step}[{link.head}, {link.query}, {link.key}]",
        )

    def left_out(self) -> Collection[str]:
        """Without a layer that is shown there are all heads alone."""
        return () if len(self.scopes) > 1 else ("kind",)

    # What keys do

    def action_scope(self) -> None:
        """All heads, the layer, the head."""
        self.scope = self.scopes[(self.scopes.index(self.scope) + 1) % len(self.scopes)]
        self.begin()

    def action_itself(self) -> None:
        """With or without links from a token to itself."""
        self.itself = not self.itself
        self.begin()

    def hiding_changed(self) -> None:
        """Look anew, without the hidden tokens."""
        self.begin()

    @on(LineList.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        link = self.found[event.index]
        self.leave_to(link.step, link.head, link.query, link.key)


def _head_name(step: Attention, head: int, *, several: bool) -> str:
    """`L3 H7`; where there are several stacks or kinds of attention, with a word for it."""
    kind = f"{step.stack if step.own else 'cross'} " if several else ""
    return f"{kind}L{step.layer} H{head}"
