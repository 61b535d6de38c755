"""A sentence that is edited: at every letter what is behind follows, and both sentences stand above one another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate, zip_longest

from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.prompt import STALE, Below, PromptScreen
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.session.pane_fit import lines_edited
from tui_transformer.session.sentence_change import (
    LEAST_MOVE,
    AnswerLine,
    HeadChange,
    Pair,
    SentenceChange,
    change_of,
    columns_of,
    cost_of_change,
    differs,
    word_at,
)
from tui_transformer.session.sentences import SOURCE, TARGET
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Size
from tui_transformer.text.display import cells, first_fitting, fit, token_label
from tui_transformer.views.numbers import share_bar
from tui_transformer.views.step_view import placed

FRAME, AROUND = 2, 4
"""Lines and columns of the box that its text does not have."""

CHANGE = "sentence change"
"""As what the worker is asked for."""

QUICK, PAUSE = 0.05, 0.08
"""Seconds that a letter may take to be followed at once, and those without one after which it is followed else."""


class BothSentences(Below):
    """The sentence before and the one that is typed, and what is known of what that changes; it tells what follows.

    Attributes:
        before: The session on the sentence before.
        after: That on what is typed, or the last of it that could be read.
    """

    def __init__(
        self,
        worker: Worker,
        before: Session,
        value: str,
        read: Callable[[str], Session],
        *,
        follow: Callable[[Session | None], None],
        room: Callable[[int], None],
        lines: Callable[[Size], int] = lines_edited,
        target: bool = False,
    ) -> None:
        """Know nothing yet.

        Args:
            worker: Computes what takes long.
            before: The session on the sentence as it is.
            value: The sentence.
            read: The session on another one; InputError where that cannot be read.
            follow: Called at every letter with the session; None where what is typed cannot be read, so that what is
                shown is of the sentence before.
            room: Called with the lines that the sentence takes, where they change.
            lines: Those on a screen.
            target: Whether it is what a decoder beside an encoder has written.
        """
        super().__init__()
        self.before = self.after = before
        self._worker, self._read, self._follow, self._room, self._lines_on = worker, read, follow, room, lines
        self._first, self._read_already = value, {value: before}
        self._sequence = TARGET if target else SOURCE
        self._known: SentenceChange | None = None
        self._is_read, self._lines = True, 0
        self._late: Timer | None = None
        self._took = 0.0002 * len(before.trace.program.steps)  # about: a step takes so long to be laid out

    @property
    def settled(self) -> bool:
        return self._late is None and (not self.is_attached or self._requests.settled)

    def on_mount(self) -> None:
        self.prompt.screen_layout_refresh_signal.subscribe(self, lambda _: self._take_room())
        self._take_room()
        self._compare()

    @property
    def prompt(self) -> PromptScreen:
        screen = self.screen
        assert isinstance(screen, PromptScreen)  # noqa: S101
        return screen

    @cached_property
    def _requests(self) -> Requests:
        return Requests(self.prompt, self._worker, self._show, lambda: self.before.model.backend.device == "cpu")

    def _take_room(self) -> None:
        lines = self._lines_on(Size(*self.app.size))
        if lines != self._lines:
            self._lines = lines
            self._room(lines)
            self._show()

    def session_of(self, text: str | None) -> Session:
        """The session on what was given; that before where nothing was, or nothing was changed."""
        if self._late is not None:
            self._late.stop()
        self._worker.cancel(CHANGE)
        if text is None or self.after is self.before:
            return self.before
        remember("sentences", text)
        return self.after

    # Letter by letter

    def typed(self, text: str) -> None:
        """Let everything follow a letter; where that takes long, once no other comes."""
        if self._late is not None:
            self._late.stop()
        if self._took > QUICK:
            self._late = later(self, PAUSE, partial(self._follow_text, text))
        else:
            self._follow_text(text)

    def check(self, text: str) -> None:
        """Read what is typed; what was read of it already is kept, with what is known of it.

        Raises:
            InputError: It cannot be read.
        """
        session = self._read_already.get(text) or self._read(text)
        self._read_already = {self._first: self.before, text: session}
        self.after = session

    def _follow_text(self, text: str) -> None:
        """Show what is typed; nothing waits for what has to be computed."""
        begun, self._late = time.monotonic(), None
        try:
            self.check(text)
        except InputError as error:
            self._is_read = False
            self._requests.cancel(CHANGE)
            self.prompt.refuse(error)
            self._follow(None)
            self._show()
        else:
            self._is_read = True
            self._follow(self.after)
            self._compare()
        self._took = time.monotonic() - begun

    def _compare(self) -> None:
        """Ask for what the sentence changes; a newer letter ends that."""
        before, after = self.before, self.after
        cost = cost_of_change(before, after)
        self._requests.ask(CHANGE, lambda task: change_of(before, after, task.report), self._take, cost)
        self._show()

    def _take(self, change: SentenceChange) -> None:
        self._known = change
        self._show()

    def _show(self) -> None:
        """Both sentences and what is known of them, dimmed where it is old; nothing where what is typed is none."""
        if not self._is_read:
            self.update("")
            return
        width, known = max(self.app.size.width - AROUND, 1), self._known
        height = self._lines - FRAME - 1
        lines: list[Content] = []
        if height >= 3:
            lines += sentences(self.before, self.after, self._sequence, width)
        old = known is None or known.after is not self.after
        lines += changed(known, width, height - len(lines), old=old)
        self.update(Content("\n").join(each.truncate(width) for each in lines[:height]))


def show_as_new(screen: Overview) -> None:
    """What a tool shows is of what is typed."""
    screen.query_one("#overview-content").remove_class(STALE)


def prompt_for(title: str, value: str, both: BothSentences, over: Widget) -> PromptScreen:
    """Asks for a sentence in the place of a widget, with both below it."""
    lately = recent("sentences")
    title += ", as token IDs" * (both.before.model.vocabulary is None)
    return PromptScreen(title, value=value, check=both.check, preview=both.typed, lately=lately, over=over, below=both)


def edit_in(screen: Overview, show: Callable[[Session], None]) -> None:
    """Edit the sentence over a tool, which shows each session that it is given; the main screen follows at the end."""
    session, port = screen.session, screen.port
    if not session.model.config.vocab_size:
        screen.say("this model reads no sentence")
        return
    place = Static(id="overview-edited")
    content = screen.query_one("#overview-content")

    def room(lines: int) -> None:
        place.styles.height = lines

    def follow(changed: Session | None) -> None:
        content.add_class(STALE)
        if changed is not None and changed is not screen.session:
            screen.session = changed
            show(changed)
        elif changed is not None:
            show_as_new(screen)

    title = "Source sentence" if session.model.has_decoder else "Sentence"
    both = BothSentences(screen.worker, session, session.sentence, session.with_text, follow=follow, room=room)

    def finish(text: str | None) -> None:
        chosen = both.session_of(text)
        place.remove()
        screen.remove_class("-edited")
        follow(chosen)
        if chosen is not session:
            port.change(chosen)

    screen.add_class("-edited")
    screen.mount(place, before=content)
    screen.open(prompt_for(title, session.sentence, both, place), finish)


# Both in lines: the words that changed, the answer before and after, the heads


BEFORE, NOW = "was  ", "now  "
"""What stands before the two sentences."""

KEPT, RISEN, FALLEN = "█", "▓", "░"
"""Columns of a bar: what stays, what came and what went."""

SAME, WENT, CAME, QUIET = "$foreground 70%", "bold underline $error", "bold underline $success", "$foreground 60%"
WORD, NUMBER, MOVED, LEAST_BAR, BAR = 16, 7, 8, 6, 40
"""Columns of a word at most, of a number, of a difference, and of a bar at least and at most."""

HEADS, WITH_LINK, HEAD_BAR, LEAST_LINK = 24, 45, 6, 8
"""Columns of the heads beside the answer without links and with them, of their bars, and of a link at least."""

BETWEEN = 3
"""Columns between the answer and the heads."""

HEADS_SAID = (
    "heads that look elsewhere, the link that changes most",
    "heads that look elsewhere",
    "heads look elsewhere",
)
NONE_MOVED = ("no head looks elsewhere", "no head moved")
"""Said over the heads, in ever fewer words."""


def sentences(before: Session, after: Session, sequence: str, width: int) -> tuple[Content, Content]:
    """Both sentences, word above word, what changed marked; the last change is in view."""
    pairs = columns_of(before, after).get(sequence, ())
    shown = [(word_at(before, sequence, i), word_at(after, sequence, j)) for i, j in pairs]
    marked = [differs(before, after, sequence, pair) for pair in pairs]
    widths = [max(map(cells, pair)) + 1 for pair in shown]
    columns = _in_view(widths, marked, width - len(BEFORE))
    lines = []
    for side, (name, style) in enumerate(((BEFORE, WENT), (NOW, CAME))):
        line = [Content.styled(name + ("… " if columns.start else ""), QUIET)]
        for at in columns:
            word = shown[at][side]
            there = word or "·"  # the other sentence alone has it
            line.append(Content.styled(there, (style if word else QUIET) if marked[at] else SAME))
            line.append(Content(" " * (widths[at] - cells(there))))
        line.append(Content.styled("…" if columns.stop < len(pairs) else "", QUIET))
        lines.append(Content("").join(line))
    return lines[0], lines[1]


def _in_view(widths: Sequence[int], marked: Sequence[bool], room: int) -> range:
    """The columns that are shown: from the first on, or as far behind it as the last change needs."""
    if sum(widths) <= room:
        return range(len(widths))
    last = max((at for at, each in enumerate(marked) if each), default=0)
    room -= len("… …")
    first = 0
    if sum(widths[: last + 1]) > room:
        before = accumulate(reversed(widths[: last + 1]))
        first = last + 1 - max(sum(taken <= room for taken in before), 1)
    return range(first, first + max(sum(end <= room for end in accumulate(widths[first:])), 1))


def changed(change: SentenceChange | None, width: int, height: int, *, old: bool) -> Iterator[Content]:
    """The answer before and after, and beside it the heads that look elsewhere, as far as there is room.

    What is `old` is of a sentence before the one that is typed.
    """
    if change is None or height < 1:
        yield from [Content.styled("…", QUIET)] * min(height, 1)
        return
    least = 48  # columns that the answer has
    beside = next((each for each in (WITH_LINK, HEADS) if width >= least + BETWEEN + each), 0)
    room = min(width - beside - BETWEEN * bool(beside), WORD + 2 * NUMBER + BAR + MOVED + 5)
    heading = height >= 4 or not change.lines or height == 1
    answer = [Content.styled(fit(change.said, room).rstrip(), "bold")] if heading else []
    answer += [_answer_line(each, room, change) for each in change.lines[: height - len(answer)]]
    heads = [*_heads(change, width - room - BETWEEN, height, heading=heading)] if beside else []
    for left, right in zip_longest(answer, heads, fillvalue=Content()):
        line = left + " " * (room + BETWEEN - left.cell_length) + right if right.plain else left
        yield Content.styled(line.plain, "$foreground 35%") if old else line


def _answer_line(line: AnswerLine, width: int, change: SentenceChange) -> Content:
    """A word, its share before and now, both on one bar, and the difference."""
    name = min(max([cells(each.label) for each in change.lines] + [4]), WORD, max(width - 2 * NUMBER - 3, 4))
    was, now = line.numbers
    same = change.before is change.after
    numbers = f"{now:>{NUMBER}}" if same else f"{was:>{NUMBER}} → {now:<{NUMBER}}"
    parts = [Content(f"{fit(line.label, name)} "), Content.styled(numbers, "")]
    left = width - sum(each.cell_length for each in parts) - 1 - MOVED * (not same)
    if line.share and left >= LEAST_BAR:
        parts += [Content(" "), change_bar(line.was, line.now, min(left, BAR))]
    if line.share and not same and left >= 0:
        parts.append(Content.styled(f"{line.moved:>{MOVED}}", "$success" if line.now > line.was else "$error"))
    return Content("").join(parts)


def change_bar(was: float, now: float, width: int) -> Content:
    """Two shares on one bar to 1: what stays, and behind it what came or went; what is no number has none."""
    before, after = (round(min(max(0.0, each), 1.0) * width) for each in (was, now))
    kept, longer = sorted((before, after))
    sign, style = (RISEN, "$success") if after > before else (FALLEN, "$error")
    bar = Content.styled(KEPT * kept, "$primary") + Content.styled(sign * (longer - kept), style)
    return bar.pad_right(width - longer)


def _heads(change: SentenceChange, width: int, height: int, *, heading: bool) -> Iterator[Content]:
    """The heads that look elsewhere, that which does most first, each with the link that changes most."""
    if change.before is change.after:
        model = change.after.model
        what = "token IDs" if model.vocabulary is None else "tokens"
        lines = "write, and everything follows every letter", f"up to {model.most_tokens:,} {what}"
        yield from (Content.styled(fit(each, width).rstrip(), QUIET) for each in lines[:height])
        return
    moved = [each for each in change.heads if each.size >= LEAST_MOVE]
    if heading:
        texts = HEADS_SAID if moved else NONE_MOVED if change.heads else ("",)
        yield Content.styled(first_fitting(texts, width), QUIET)
    heads = moved[: height - heading]
    names, links = [head.name for head in heads], [_link(head, change) for head in heads]
    if len({head.step.group for head in change.heads}) > 1:
        kinds = ["cross" if head.step.kind == "cross_attention" else head.step.stack[:3] for head in heads]
        names = [f"{kind} {name}" for kind, name in zip(kinds, names, strict=True)]
    name, link = (max(map(cells, texts), default=0) for texts in (names, links))
    for at, head in enumerate(heads):  # `L0 H2  .61 ████▉  the to map  .02 → .61`
        line = Content(f"{fit(names[at], name)} {_short(head.size):>4} ")
        line += Content.styled(share_bar(head.size, HEAD_BAR), "$accent")
        sides = zip(head.key, (head.was, head.now), strict=True)
        was, now = ("–" if place is None else _short(weight) for place, weight in sides)
        weights = f"{was:>4} → {now}"
        room = min(width - line.cell_length - len(weights) - 3, link)
        yield line if room < LEAST_LINK else line + f"  {fit(links[at], room)} {weights}"


def _link(head: HeadChange, change: SentenceChange) -> str:
    """The words of a link, of the sentence that has them."""

    def word(axis: str, pair: Pair) -> str:
        session, place = (change.after, pair[1]) if pair[1] is not None else (change.before, pair[0])
        words = session.labels.sequences.get(axis, ())
        label = token_label(words[place]) if place is not None and place < len(words) else ""
        return label if place is None or words.count(words[place]) < 2 else placed(label, place)

    step = head.step
    return f"{word(step.queries.sequence, head.query)} to {word(step.keys.sequence, head.key)}"


def _short(weight: float) -> str:
    return f"{weight:.2f}".removeprefix("0") if weight < 0.995 else "1.0"
