"""What the Train screen shows: curves, numbers, gradients, a head and outputs, as the size allows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.events import Resize
from textual.widgets import Static

from tui_transformer.explorer.shell.actions import TRAIN
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.key_line import key_line
from tui_transformer.explorer.shell.keys import Action, bindings
from tui_transformer.explorer.tools.runs.chosen import Chosen
from tui_transformer.explorer.tools.runs.sample import Heads, Output
from tui_transformer.explorer.tools.train import lines
from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.pace import Pace
from tui_transformer.explorer.widgets.chart import Chart
from tui_transformer.explorer.widgets.inks import INK_CLASSES, Inks, inks_of
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.thumbnails import HeadStrip
from tui_transformer.text.display import visible
from tui_transformer.views.charts import BarChart
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Scale

OFTEN = 0.25
"""Seconds between two looks at where the run stands."""

CURVES = {"loss": "loss", "accuracy": "accuracy", "rate": "learning rate", "norm": "gradient"}
PARTS = (*CURVES, "now", "norms", "head", "outputs")
TABS = {"norms": "layers"}
"""What parts are called where one is shown at a time, if it is not their name."""

TITLES = {"now": "Now", "outputs": "Outputs for validation examples"}
LAYOUTS = {"wide": (140, 42), "medium": (96, 26), "narrow": (0, 0)}
ALWAYS = {"wide": PARTS, "medium": ("loss", "accuracy", "now"), "narrow": ()}
"""The parts that each layout shows; of the others it shows the one that was chosen."""

BESIDE_STRIP = 4
"""Lines beside the pictures of the heads and the rows of the matrix: numbers, gap, keys, legend."""

WEIGHT = Scale("sequential", 0.0, 1.0)


class TrainStage(ExplorerScreen[None]):
    """The parts around one run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TRAIN)
    AUTO_FOCUS = ""
    COMPONENT_CLASSES: ClassVar[set[str]] = INK_CLASSES
    DEFAULT_CSS = """
    TrainStage {
        layout: vertical;
        background: $background;
        & > .ink--plain { color: $foreground; }
        & > .ink--quiet { color: $foreground 60%; }
        & > .ink--accent { color: $accent; text-style: bold; }
        & > .ink--marked { color: $background; background: $accent; text-style: bold; }
        & > .ink--right { color: $success; }
        & > .ink--wrong { color: $error; text-style: bold; }
        &:nocolor > .ink--marked, &:ansi > .ink--marked { text-style: bold reverse; }

        #title, #brief, #tabs, #keys { height: 1; width: 1fr; }
        #title, #keys { background: $surface; }
        #brief { padding: 0 1; }
        #tabs { padding: 0 0 0 1; }
        #problem { height: auto; max-height: 3; padding: 0 1; color: $error; text-style: bold; display: none; }
        #problem.-said { display: block; }
        #body, #left, #right { height: 1fr; width: 1fr; }
        #loss { height: 2fr; }
        #accuracy { height: 1.5fr; }
        #rate, #norm { height: 1.2fr; }
        #top { height: 14; }
        #now, #norms { width: 1fr; height: 1fr; }
        #now { width: 1.5fr; }
        #head, #outputs { height: 1fr; }
        #outputs-text, #matrix { height: 1fr; }
        #heads { height: auto; margin: 0 0 1 0; }
        .part {
            border: round $border-blurred;
            border-title-color: $foreground 70%;
            border-subtitle-color: $foreground 60%;
            background: $background;
            padding: 0 1;
        }
        &.-wide #head { height: 2fr; }
        &.-medium #top { height: 11; }
        &.-narrow .part { border: none; height: 1fr; }
        &.-narrow #head, &.-narrow #outputs { border-top: solid $border-blurred; }
        &.-narrow #top { height: 1fr; }
    }
    """

    def __init__(self, training: Training) -> None:
        """Show a run."""
        super().__init__()
        self.training = training
        self.chosen = Chosen()
        self.part = "loss"
        self.closing: Callable[[], object] | None = None
        self._pace = Pace()
        self.heads: Heads | None = None
        self._outputs: tuple[Output, ...] = ()
        self._drawn: object = None
        self._said: dict[str, Text | Content | str] = {}
        self._layout = ""

    # Layout

    def compose(self) -> ComposeResult:
        """Title, curves beside everything else, keys."""
        yield Static(id="title", markup=False)
        yield Static(id="brief", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield from (Chart(id=name, classes="part") for name in CURVES)
            with Vertical(id="right"):
                with Horizontal(id="top"):
                    with Vertical(id="now", classes="part"):
                        yield Static(id="numbers", markup=False)
                    yield Chart(id="norms", classes="part")
                with Vertical(id="head", classes="part"):
                    yield HeadStrip(id="heads")
                    yield MatrixPane(id="matrix")
                with Vertical(id="outputs", classes="part"):
                    yield Static(id="outputs-text", markup=False)
        yield Static(id="tabs", markup=False)
        yield Static(id="problem", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Look at the run again and again."""
        for widget in (self.query_one(HeadStrip), self.query_one(MatrixPane).cells):
            widget.can_focus = False
        for name, title in TITLES.items():
            self.query_one(f"#{name}").border_title = title
        self._choose_layout(*self.app.size)
        self.training.changed = self._changed
        self.set_interval(OFTEN, self._tick)
        self.show(all_of_it=True)

    def on_unmount(self) -> None:
        """Nobody is told any more."""
        self.training.changed = lambda: None

    def on_screen_resume(self) -> None:
        """Another screen was in front: draw everything."""
        if self.is_mounted:
            self.show(all_of_it=True)

    def on_resize(self, event: Resize) -> None:
        """Show all parts, some, or one at a time, as the size allows."""
        self._choose_layout(*event.size)
        self.call_after_refresh(self.show, all_of_it=True)

    def _choose_layout(self, width: int, height: int) -> None:
        self._layout = next(name for name, (w, h) in LAYOUTS.items() if width >= w and height >= h)
        self.update_classes({f"-{name}": name == self._layout for name in LAYOUTS})
        self.show_parts()

    @property
    def others(self) -> tuple[str, ...]:
        """The parts of which one is shown at a time."""
        return tuple(name for name in PARTS if name not in ALWAYS[self._layout])

    def show_parts(self) -> None:
        """Show the parts that there is room for, and of the others the one that was chosen."""
        others = self.others
        if others and self.part not in others:
            self.part = "head" if "head" in others else others[0]
        shown = {*ALWAYS[self._layout], *([self.part] if others else [])}
        for name in PARTS:
            self.query_one(f"#{name}").display = name in shown
        for box in ("top", "left", "right"):
            self.query_one(f"#{box}").display = any(part.display for part in self.query_one(f"#{box}").query(".part"))
        self.query_one("#brief").display = "now" not in shown
        self.query_one("#tabs").display = bool(others)

    # What is shown

    def _changed(self) -> None:
        """Called on the training's thread."""
        self.app.post(self.while_there(self._told))  # type: ignore[attr-defined]

    def _told(self) -> None:
        if self.is_current:
            self._show_now()

    def _show_now(self) -> None:
        with suppress(NoMatches):  # the screen is being taken away
            self.show(all_of_it=self.training.status.state != "training")

    def _tick(self) -> None:
        """Look where the run stands; what takes longer to draw is drawn less often."""
        if self.training.error is not None:
            raise self.training.error
        if self.closing is not None:
            self._close(self.closing)
        elif self.is_current and self.training.status is not self._drawn:
            self._show_now()

    def _close(self, then: Callable[[], object]) -> None:
        """Go on once the run is saved and closed; where it cannot be saved, it stays open."""
        if not self.training.alive:
            self.closing = None
            then()
        elif not self.training.ending:
            self.closing = None
            self.show_lines()

    def show(self, *, all_of_it: bool) -> None:
        """Show where the run stands."""
        self.show_lines()
        if self._pace.due() or all_of_it:
            self._show_curves()
            self._show_made(again=all_of_it)

    def show_lines(self) -> None:
        """Title, numbers, tabs, what went wrong, keys."""
        status, width, inks = self.training.status, self.size.width, self.inks()
        self._drawn = status
        run = self.training.run
        what = "" if run is None else f"{run.trainer.settings.task} · {run.trainer.model.config.summary}"
        self._say("title", lines.title(self.training.name, what, status, width, inks))
        self._say("brief", lines.brief(status, width - 2))
        if run is not None and self.query_one("#now").display:
            room = self.query_one("#numbers").size.width
            self._say("numbers", lines.numbers(status, run.trainer.settings, inks, room))
        self._say("tabs", self._tabs())
        if self._said.get("problem") != status.problem:
            self._said["problem"] = status.problem
            problem = self.query_one("#problem", Static)
            problem.set_class(bool(status.problem), "-said")
            problem.update(visible(status.problem))
        self._say("keys", key_line(self._actions(), self.app, width))

    def _actions(self) -> list[Action]:
        """What can be done, as the line of keys has it."""
        words = {"step.on": "pause" if self.training.status.state == "training" else "train"}
        return [replace(each, short=words.get(each.id, each.short)) for each in TRAIN]

    def _say(self, name: str, text: Text | Content | str) -> None:
        """Update a text, if it is another."""
        if self._said.get(name) != text:
            self._said[name] = text
            self.query_one(f"#{name}", Static).update(text, layout=False)

    def _tabs(self) -> Content:
        """The parts of which one is shown at a time, that one marked."""
        names = {name: TABS.get(name, name) for name in self.others}
        parts = [
            Content.styled(f"[{text}]", "bold $accent") if name == self.part else Content.styled(f" {text} ", "dim")
            for name, text in names.items()
        ]
        return Content.assemble(("tab", "bold $accent"), *parts)

    def _show_curves(self) -> None:
        """The curves and the gradients by layer, where they are shown."""
        for name, kind in CURVES.items():
            chart = self.query_one(f"#{name}", Chart)
            if chart.display:
                chart.show(self.training.curves.chart(kind))
        norms, record = self.query_one("#norms", Chart), self.training.status.record
        if norms.display and record is not None:
            labels, values = tuple(record.norms), tuple(record.norms.values())
            norms.show(BarChart("Gradient norm by layer", labels, values))

    def _show_made(self, *, again: bool) -> None:
        """The head and the outputs, where there are newer ones."""
        looks = self.training.looks
        if looks is None:
            return
        if looks.heads is not None and (again or looks.heads is not self.heads):
            self.heads = looks.heads
            self.show_head()
        if again or looks.outputs is not self._outputs:
            self._outputs = looks.outputs
            self.show_outputs()

    def show_head(self) -> None:
        """The chosen head on the sample."""
        heads = self.heads
        if heads is None or not heads.attentions:
            return
        attention, head = self.chosen.of(heads.attentions)
        view = heads.view(attention, head)
        tile = view.tile(range(view.rows.size), range(view.columns.size))
        pane = self.query_one("#head")
        pane.border_title = Content(visible(f"{attention.group} · layer {attention.layer} · head {head}"))
        pane.border_subtitle = f"step {heads.step:,}"
        self.query_one(MatrixPane).show_matrix(view, WEIGHT, tile, Place(), note="rows queries, columns keys")
        strip, tiles = self.query_one(HeadStrip), heads.weights[attention.name]
        strip.show(list(tiles), head, WEIGHT)
        room = pane.content_size.height - len(tiles[0]) - BESIDE_STRIP
        strip.display = len(tiles) > 1 and (len(tiles[0]) + 1) // 2 <= room

    def show_outputs(self) -> None:
        """What the model made of examples."""
        text = self.query_one("#outputs-text", Static)
        width, height = text.size
        self._say("outputs-text", lines.outputs(self._outputs, width, height, self.inks()))

    def inks(self) -> Inks:
        """The styles of the lines."""
        return inks_of(self)
