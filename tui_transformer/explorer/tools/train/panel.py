"""The parts around a run: curves, numbers, gradients, a head and outputs, as the size allows."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from tui_transformer.engine.number_format import in_percent
from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.tools.runs import WEIGHT, Heads, HeadSelection, Output, Turned
from tui_transformer.explorer.tools.train.driver import Status, Training
from tui_transformer.explorer.widgets.chart import Chart
from tui_transformer.explorer.widgets.heat_map import MatrixPane
from tui_transformer.explorer.widgets.labels import Inks, Written, inks_of
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.learning.loop import Measured
from tui_transformer.learning.settings import Settings
from tui_transformer.report.numbers import clock
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.views.charts import BarChart
from tui_transformer.views.numbers import share_bar, short_number

CURVES = {"loss": "loss", "accuracy": "accuracy", "rate": "learning rate", "norm": "gradient"}
PARTS = (*CURVES, "now", "norms", "head", "outputs")
TITLES = {"now": "Now", "outputs": "Outputs for validation examples"}
LAYOUTS = {"wide": (140, 42), "medium": (96, 26), "narrow": (0, 0)}
ALWAYS = {"wide": PARTS, "medium": ("loss", "accuracy", "now"), "narrow": ()}
"""The parts that each layout shows; of the others it shows the one that was chosen."""

LABEL, BAR = 15, 12
"""Columns of what a number is, and of a bar."""

SHARE = 0.02
"""Of one core, what drawing may take."""

LEAST, MOST = 0.25, 5.0
"""Seconds between two drawings."""


class TrainPanel(Vertical):
    """The parts around one run.

    Attributes:
        part: The one that was chosen, where one is shown at a time.
        status: Where the run stood when it was last written.
    """

    DEFAULT_CSS = """
    TrainPanel {
        #brief, #tabs { height: 1; width: 1fr; }
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
        super().__init__()
        self._training = training
        self.part, self.selection = "loss", HeadSelection()
        self.heads: Heads | None = None
        self.status: Status | None = None
        self._outputs: tuple[Output, ...] = ()
        self._throttle, self._written = Throttle(), Written(self)
        self._layout = "narrow"

    def compose(self) -> ComposeResult:
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
                    yield HeadThumbnails(id="heads")
                    yield MatrixPane(id="matrix")
                with Vertical(id="outputs", classes="part"):
                    yield Static(id="outputs-text", markup=False)
        yield Static(id="tabs", markup=False)
        yield Static(id="problem", markup=False)

    def on_mount(self) -> None:
        for widget in (self.query_one(HeadThumbnails), self.query_one(MatrixPane).cells):
            widget.can_focus = False
        for name, title in TITLES.items():
            self.query_one(f"#{name}").border_title = title

    # Layout

    def fit(self, size: Size) -> None:
        self._layout = next(name for name, (w, h) in LAYOUTS.items() if size.width >= w and size.height >= h)
        self.set_classes(f"-{self._layout}")
        self._show_parts()

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in PARTS if name not in ALWAYS[self._layout])

    def turn_part(self, by: int) -> None:
        if others := self.others:
            self.part = others[(others.index(self.part) + by) % len(others)]
            self._show_parts()

    def _show_parts(self) -> None:
        others = self.others
        if others and self.part not in others:
            self.part = "head" if "head" in others else others[0]
        shown = {*ALWAYS[self._layout], *([self.part] if others else [])}
        for name in PARTS:
            self.query_one(f"#{name}").display = name in shown
        for box in map(self.query_one, ("#top", "#left", "#right")):
            box.display = any(part.display for part in box.query(".part"))
        self.query_one("#brief").display = "now" not in shown
        self.query_one("#tabs").display = bool(others)

    # What is shown

    @property
    def settled(self) -> bool:
        made = self._training.snapshots
        return self.status is self._training.status and (made is None or self.heads is made.heads)

    def show(self, *, everything: bool) -> None:
        """Show where the run stands, and what went wrong; the charts now and then, or in any case."""
        status, run = self._training.status, self._training.run
        self.status = status
        self._written.write("brief", brief(status, self.size.width - 2))
        if run is not None and self.query_one("#now").display:
            room = self.query_one("#numbers").size.width
            self._written.write("numbers", numbers(status, run.trainer.settings, inks_of(self.screen), room))
        key = first_key(self.app, "pane.next")
        names = [(name, "layers" if name == "norms" else name) for name in self.others]
        room = self.size.width - 1 - cells(key)
        while len(names) > 1 and names[0][0] != self.part and sum(len(text) + 2 for _, text in names) > room:
            del names[0]  # the one that was chosen is always named
        tabs = [
            Content.styled(f"[{text}]", "bold $accent") if name == self.part else Content.styled(f" {text} ", "dim")
            for name, text in names
        ]
        self._written.write("tabs", Content.assemble((key, "bold $accent"), *tabs))
        self.query_one("#problem").set_class(bool(status.problem), "-said")
        self._written.write("problem", visible(status.problem), grows=True)
        if not self._throttle.due() and not everything:
            return
        for name, kind in CURVES.items():
            chart = self.query_one(f"#{name}", Chart)
            if chart.display:
                chart.show(self._training.curves.chart(kind))
        norms, record = self.query_one("#norms", Chart), self._training.status.record
        if norms.display and record is not None:
            norms.show(BarChart("Gradient norm by layer", tuple(record.norms), tuple(record.norms.values())))
        made = self._training.snapshots
        if made is None:
            return
        if made.heads is not None and (everything or made.heads is not self.heads):
            self.heads = made.heads
            self._show_head()
        if everything or made.outputs is not self._outputs:
            self._outputs = made.outputs
            width, height = self.query_one("#outputs-text", Static).size
            self._written.write("outputs-text", outputs(self._outputs, width, height, inks_of(self.screen)))

    def turn(self, what: Turned, by: int) -> None:
        heads = self.heads
        if heads is not None and heads.attentions:
            self.selection = self.selection.turned(heads.attentions, what, by)
            self._show_head()

    def _show_head(self) -> None:
        heads = self.heads
        if heads is None or not heads.attentions:
            return
        attention, head = self.selection.of(heads.attentions)
        pane = self.query_one("#head")
        pane.border_title = Content(visible(f"{attention.group} · layer {attention.layer} · head {head}"))
        pane.border_subtitle = f"step {heads.step:,}"
        heads.draw(self.query_one(MatrixPane), attention, head)
        all_heads, tiles = self.query_one(HeadThumbnails), heads.weights[attention.name]
        all_heads.show(list(tiles), head, WEIGHT)
        room = pane.content_size.height - len(tiles[0]) - 4  # besides numbers, gap, keys and legend
        all_heads.display = len(tiles) > 1 and (len(tiles[0]) + 1) // 2 <= room


class Throttle:
    """Counts what the screen's thread has computed, and says when it may draw again."""

    def __init__(self) -> None:
        self._at, self._used = -MOST, time.thread_time()

    def due(self) -> bool:
        """Whether to draw now; what is computed until the next call that says so counts as its cost."""
        now, used = time.monotonic(), time.thread_time()
        wait = min(max((used - self._used) / SHARE, LEAST), MOST)
        if now - self._at < wait:
            return False
        self._at, self._used = now, used
        return True


# Where a run stands, in words


def brief(status: Status, width: int) -> str:
    """Where the run stands, in one line, the most important first."""
    parts = [f"step {status.step:,} of {status.steps:,}"]
    if status.record is not None:
        parts += [f"loss {status.record.loss:.4f}", f"accuracy {in_percent(status.record.accuracy)}"]
    parts += [f"rate {status.next_rate:.2g}", *([f"{left} left"] if (left := _time_left(status)) else [])]
    return fit(" · ".join(parts), width)


def _time_left(status: Status) -> str:
    going = status.seconds and status.state == "training"
    return clock(status.seconds * (status.steps - status.step)) if going else ""


def numbers(status: Status, settings: Settings, inks: Inks, width: int) -> Text:
    """Where the run stands, a line a number."""
    record, epoch, room = status.record, status.epoch, max(width - LABEL, 0)
    bar = f"  {share_bar(status.step / max(status.steps, 1), BAR)}▏" if room > 14 + BAR else ""
    last = held_out = "–"
    if epoch is not None:
        last = f"{epoch.loss:.4f} · {in_percent(epoch.accuracy)} · epoch {epoch.number:,}"
    if status.measured is not None:
        step, measured = status.measured
        held_out = f"{measured.loss:.4f} · {in_percent(measured.accuracy)} · step {step:,}"
    clipped = perplexity = ""
    if record is not None:
        clipped = f", clipped to {settings.clip:g}" if 0 < settings.clip < record.gradient_norm else ""
        perplexity = short_number(Measured(record.loss, record.accuracy, 0).perplexity)
    of = {  # what is left out first where there is little room comes last
        "step": f"{status.step:,} of {status.steps:,}{bar}",
        "time left": _time_left(status) or "–",
        "speed": f"{short_number(1 / status.seconds)} steps/s" if status.seconds else "–",
        "learning rate": f"{status.next_rate:.3g} · {settings.schedule} from {status.rate:.3g}",
        "loss": "–" if record is None else f"{record.loss:.4f}",
        "accuracy": "–" if record is None else in_percent(record.accuracy),
        "last epoch": last,
        "validation": held_out,
        "gradient norm": "–" if record is None else f"{short_number(record.gradient_norm)}{clipped}",
        "checkpoint": "none yet" if status.saved is None else f"step {status.saved:,}",
        "perplexity": "–" if settings.label_smoothing else perplexity or "–",  # a smoothed loss has none
        "epoch": f"{status.seen:.2f}",
        "tokens": "–" if record is None else f"{record.tokens_per_second:,.0f} a second",
    }
    lines = Text()
    for label, value in of.items():
        lines.append(f"{label:<{LABEL}}", inks.quiet).append(f"{fit(value, room)}\n", inks.plain)
    lines.right_crop(1)
    return lines


def outputs(made: Iterable[Output], width: int, lines: int, inks: Inks) -> Text:
    """The model's answers to examples, the newest first, as many as there is room for."""
    text = Text(overflow="fold")
    for output in made:
        given, answer = visible(output.given), visible(output.made)
        entry = Text(f"{output.step:>6,}  ", inks.quiet)
        if output.right is None:
            entry.append(f"{given} ", inks.quiet).append(answer, inks.plain)
        else:
            entry.append(*(("right  ", inks.right) if output.right else ("wrong  ", inks.wrong)))
            entry.append(f"{given} → ", inks.quiet).append(answer or "nothing", inks.plain)
        if output.right is False:
            entry.append(f"   expected {visible(output.expected)}", inks.quiet)
        lines -= max(-(-entry.cell_len // max(width, 1)), 1)
        if lines < 0:
            break
        text.append_text(entry).append("\n")
    text.right_crop(1)
    return text
