"""What each part is good for: one thing broken at a time, before and after side by side, and a number that is moved."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal

from tui_transformer.diagnosis.breaking import BREAKS, Break, Broken, rounded
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, work_on
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.tools.breaks.findings import HEAD, Findings, Found, Job, described
from tui_transformer.explorer.widgets.heat_map import MatrixPane
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.guide.texts import step_text
from tui_transformer.session.break_effect import BreakEffect
from tui_transformer.session.exploration import History, Way
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import BarScale
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import View

TITLE, NARROW, SIZE, SAID = 34, 72, 8, 36
"""Columns of what is broken, below which the answer alone has room beside it, of a bar, and of the answer at least."""

MOVES = BarScale(1.0)
"""How far an answer moves: a full bar is all of the probability."""

LINES: Mapping[str, tuple[int, int]] = {"-roomy": (len(BREAKS), 10), "-high": (8, 5), "-tall": (5, 4)}
"""Lines of the list and below it, by the class of the height."""


class BeforeAfter(Horizontal):
    """The step where a break acts, before and after, in the same colours."""

    DEFAULT_CSS = """
    BeforeAfter {
        height: 1fr;
        & MatrixPane { width: 1fr; border: round $border-blurred; border-title-color: $foreground 70%; }
        & MatrixPane HeatMap { height: 1fr; }
    }
    """
    _drawn: tuple[BreakEffect | None, Break] | None = None

    def compose(self) -> ComposeResult:
        for name in ("before", "after"):
            pane = MatrixPane(id=name)
            pane.cells.can_focus = False
            yield pane

    def show(self, effect: BreakEffect | None, each: Break) -> None:
        """Show the effect of a break; that with another number stays until the new one is there."""
        if self._drawn == (effect, each) or (effect is None and self._drawn and self._drawn[1] is each):
            return
        self._drawn = effect, each
        for pane in self.query(MatrixPane):
            name = pane.id or ""
            if effect is None:
                pane.show_missing(name)
                continue
            view: View = {"before": effect.before, "after": effect.after}[name]
            head = "" if view.head is None or view.heads < 2 else f", head {view.head}"
            title = f"{step_text(effect.step).label}{head}"
            tile = view.tile(range(view.rows.size), range(view.columns.size))
            titles = (f"{title}: {name} · {effect.step}", f"{title}: {name}", name)
            pane.show_matrix(view, effect.scale, tile, Place(0, *effect.at), titles=titles)


def title_room(width: int) -> int:
    """Columns of what is broken on a screen of so many."""
    bar = SIZE + 2 if width >= NARROW else 0
    return min(TITLE, max(width - SAID - bar, 12))


class BreaksScreen(Overview, tool="breaks"):
    """Everything that can be broken, what changes the answer most first; the matrix where it acts, before and after."""

    HAS_COLUMNS = True
    WIDGETS = (LineList, BeforeAfter)
    DEFAULT_CSS = f"""
    BreaksScreen {{
        & #overview-detail {{ height: 1; text-wrap: nowrap; text-overflow: ellipsis; }}
        &.-short BeforeAfter {{ display: none; }}
        {
        "".join(
            f"&.{name} LineList {{ height: {rows}; }} &.{name} #overview-detail {{ height: {lines}; }}"
            for name, (rows, lines) in LINES.items()
        )
    }
    }}
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall"), (28, "-high"), (40, "-roomy")]  # noqa: RUF012 - as the base

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.history = History(self.session)
        self.by_hand = False
        self.findings = Findings.begun(self.session)

        def take(job: Job, found: Found) -> None:
            self.findings.take(job, found)
            self._put_in_order()

        work_on(
            self,
            lambda: self.findings.next_job(self.selected),
            lambda job, task: self.findings.work(job, task),
            take,
            lambda job: self.findings.cost(job),
            lambda job: self.findings.leave_out(job),
        )

    def begin(self) -> None:
        self.lines.show(len(BREAKS), self._line)
        self._put_in_order()
        self.pieces.again()

    def on_unmount(self) -> None:
        """Let go of what is known: a widget that was made meanwhile holds the screens that were open then."""
        self.findings, self.history = Findings.begun(self.session), History(self.session)

    def _put_in_order(self) -> None:
        """The list by what changes the answer; once the cursor was moved it stays on its line."""
        order = self.findings.order
        self.lines.filter(order)
        if not self.by_hand:
            self.lines.cursor = order[0]

    @property
    def selected(self) -> Break:
        return BREAKS[self.lines.cursor or 0]

    # What is said

    def _line(self, index: int) -> Text:
        each, findings = BREAKS[index], self.findings
        there, effect = each.name in findings.there, findings.effect(each)
        broken = any(Broken.read(name).kind is each for name in self.session.breaks)
        mark = "[■]" if broken else "[ ]" if there else "   "
        line = Text(f" {mark} {fit(findings.made[each.name].title, title_room(self.size.width))}  ", no_wrap=True)
        if self.size.width >= NARROW:
            size = "" if effect is None else MOVES.bar(effect.size, SIZE)
            line.append(f"{size:<{SIZE}}  ", "" if self.app.no_color else "cyan")
        return line.append(visible(findings.said(each)), "" if there else "dim")

    def texts(self) -> Texts:
        count, findings, each = len(self.session.breaks), self.findings, self.selected
        useful = {
            "cursor.right": each.name in findings.sliders,
            "head.next": each.name == HEAD,
            "layer.next": each.name == HEAD,
            "sentence.edit": findings.reads_text,
        }
        title = f"     {fit('broken, each by itself', title_room(self.size.width))}"
        size = "½ Σ |p − q|" if self.session.trace.program.logits else "‖x' − x‖ ÷ ‖x‖"
        height = next((lines for name, (_, lines) in LINES.items() if self.has_class(name)), 1)
        return Texts(
            f"Break it · {count} broken" if count else "Break it: what is each part good for?",
            f"what moves the answer most is first · moves: {size}, {MOVES.says}",
            described(findings, each, self.size.width - 2, height),
            f"{findings.tried} of {len(findings.there)} tried",
            f"{title}  {'moves':<{SIZE}}  the answer before → after" if self.size.width >= NARROW else title,
            useful=useful,
        )

    def show_lines(self) -> None:
        super().show_lines()
        if self.is_mounted:
            self.lines.refresh()
            self.query_one(BeforeAfter).show(self.findings.effect(self.selected), self.selected)

    # What keys do

    def moved(self) -> None:
        self.by_hand = True
        self.pieces.again()  # what is under the cursor comes first

    def action_slide(self, by: int) -> None:
        name = self.selected.name
        made, slider = self.findings.made[name], self.findings.sliders.get(name)
        if slider is None:
            self.say("this is broken or not: it has no number")
            return
        stops = slider.stops
        number = rounded(slider.usual) if made.number is None else made.number
        nearest = min(range(len(stops)), key=lambda place: abs(stops[place] - number))
        self._use(made.at(stops[min(max(nearest + by, 0), len(stops) - 1)], slider))

    def action_head(self, by: int, layers: int = 0) -> None:
        if self.selected.name == HEAD and (made := self.findings.other_head(by, layers)) is not None:
            self._use(made)

    def _use(self, made: Broken) -> None:
        """Look at a break with another number, or at another head; what was being worked out comes behind."""
        self.by_hand, self.ended = True, False
        self.findings.made[made.kind.name] = made
        self.pieces.again()

    def chosen(self) -> None:
        each, made = self.selected, self.findings.made[self.selected.name]
        if each.name not in self.findings.there:
            self.say(f"nothing to break: {each.absent}")
            return
        others = [name for name in self.session.breaks if Broken.read(name).kind is not each]
        is_broken = str(made) in self.session.breaks
        done = f"{'mended' if is_broken else 'broken'}: {made.title} · {self.port.hint('{undo} undoes it')}"
        self.action_switch(*others, *(() if is_broken else (str(made),)), says=done)

    def action_switch(self, *names: str, says: str = "nothing is broken any more") -> None:
        """Break these things in the main screen, and mend all others."""
        if names != self.session.breaks:
            self.change(lambda session: session.with_breaks(*names), says)
            self.history.push(self.session)
            self.show_lines()

    def action_turn_back(self, way: Way) -> None:
        same, ids = self.port.session is self.session, self.session.encoding.ids
        if not self.history.turn(way):
            self.say(f"there is nothing to {way} here")
            return
        names = self.history.current.breaks
        broken = ", ".join(Broken.read(each).title for each in names)
        says = f"broken: {broken}" if broken else "nothing is broken any more"
        if same and self.port.turn_back(way):
            self.session = self.port.session
            self.say(says)
        else:
            self.change(lambda session: session.with_breaks(*names), says)
        if self.session.encoding.ids != ids:
            self._begin_again()
        self.show_lines()

    def action_sentence(self) -> None:
        """Another sentence: at first that on which the break under the cursor matters."""
        elsewhere = self.findings.matters(self.selected)
        pair = None if elsewhere is None else elsewhere.pair
        own = self.session.sentence

        def read(text: str) -> Session:
            session = self.session.with_overlay(NOTHING).with_text(text)
            target = pair[1] if pair is not None and text == pair[0] else ""
            return session.with_decoder_text(target) if target else session

        def done(other: Session) -> None:
            self.session = other
            self.port.change(other)
            self.history.push(other)
            self._begin_again()

        self.open(*asking("Sentence", read, done, value=own if pair is None else pair[0], lately=(own,)))

    def _begin_again(self) -> None:
        self.by_hand = self.ended = False
        self.findings = Findings.begun(self.session)
        self.begin()
        self.show_lines()
