"""Output to the terminal: the same screen as if all were written, in far fewer bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from driving import WIDE, Explorer, exploring
from hostile import COUNTS, hold
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.guard import frame as guard_frame
from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.guard.compositor import strips_of, update_of
from tui_transformer.explorer.guard.frame import Cells, Frame
from tui_transformer.explorer.main import presenter
from tui_transformer.explorer.main.panes.matrix import ChartPane
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.session.store import Reading

SEQUENCE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|([^\x1b])")
RED, BLUE, BOLD = Style.parse("red on blue"), Style.parse("blue on red"), Style.parse("bold")
PLAIN, ON_BLUE = Style(), Style.parse("on blue")


class Terminal:
    """A terminal that understands what the program writes."""

    def __init__(self, columns: int = WIDE[0]) -> None:
        self.columns = columns
        self.cells: dict[tuple[int, int], tuple[str, ...]] = {}
        self.at, self.codes = (0, 0), ["", "", ""]

    def write(self, text: str) -> None:
        for codes, kind, character in (match.groups() for match in SEQUENCE.finditer(text)):
            y, x = self.at
            if character == "\b":
                assert 0 < x < self.columns, "there is a column before this one"
                self.at = y, x - 1
            elif character is not None:
                self.cells[y, x] = self._seen(character)
                self.at = y, x + cell_len(character)
            elif kind == "H":
                row, column = map(int, codes.split(";"))
                self.at = row - 1, column - 1
            elif kind in "BCD":
                assert x < self.columns, "behind the last column nobody knows where one is"
                by = int(codes or 1)
                self.at = {"B": (y + by, x), "C": (y, x + by), "D": (y, x - by)}[kind]
            else:
                assert kind == "m", (codes, kind)
                self._paint(codes.split(";"))

    def _seen(self, character: str) -> tuple[str, ...]:
        """A cell as the eye sees it: its two halves, or its character and colours."""
        color, background, attributes = self.codes
        if "7" not in attributes.split():
            if character == " " and "4" not in attributes.split():
                return ("halves", background, background)
            if character == "█":
                return ("halves", color, color)
            if character in "▀▄":
                return ("halves", *((color, background) if character == "▀" else (background, color)))
        return (character, *self.codes)

    def _paint(self, codes: list[str]) -> None:
        waiting = iter(codes)
        for code in waiting:
            if code in ("0", ""):
                self.codes = ["", "", ""]
            elif code in ("38", "48"):
                kind = next(waiting)
                rest = [next(waiting) for _ in range(1 if kind == "5" else 3)]
                self.codes[code == "48"] = ";".join((kind, *rest))
            elif int(code) < 30 or code == "53":
                self.codes[2] = f"{self.codes[2]} {code}".strip()
            else:
                tens, number = divmod(int(code), 10)
                background = tens in (4, 10)
                self.codes[background] = "" if number == 9 else f"{number}{'bright' * (tens in (9, 10))}"


Line = list[tuple[str, Style]]
"""Texts beside each other, each with its look."""


def full(lines: list[Line]) -> LayoutUpdate:
    strips = [[Strip([Segment(text, style) for text, style in line])] for line in lines]
    return LayoutUpdate(strips, Region(0, 0, 20, len(lines)))


HELLO, WORLD = [("hello ", RED), ("world", BOLD)], [("hello world", PLAIN)]
WIDE_TEXT, BLANK = [("日本", PLAIN), ("ab", PLAIN)], [(" " * 20, PLAIN)]
WRITTEN: dict[str, tuple[list[Line], list[Line], str]] = {
    "nothing that is there": ([HELLO], [HELLO], ""),
    "changed cells where they are": (
        [[("hello world", RED)]],
        [[("hellO worlD", RED)]],
        "\x1b[31;44m\x1b[1;5HO\x1b[5CD\x1b[0m",
    ),
    "no colours that are set": (
        [],
        [[("a", RED), ("b", RED + BOLD), ("c", RED + BOLD)]],
        "\x1b[31;44m\x1b[1;1Ha\x1b[1mbc\x1b[0m",
    ),
    "halves turned": ([], [[("▀", RED), ("▀", BLUE)]], "\x1b[31;44m\x1b[1;1H▀▄\x1b[0m"),
    "several columns": ([], [WIDE_TEXT], "\x1b[1;1H日本\x1b[1;5Hab"),
    "several columns that are there": ([WIDE_TEXT], [WIDE_TEXT], ""),
    "one for several columns": ([WIDE_TEXT], [[("x", PLAIN), ("   ab", PLAIN)]], "\x1b[1;1Hx   "),
    "the place behind a wide one": ([], [[("x日", RED), ("ab", RED)]], "\x1b[31;44m\x1b[1;1Hx日\x1b[1;4Hab\x1b[0m"),
    "a wide one first": ([], [[("日", RED), ("ab", RED)]], "\x1b[31;44m\x1b[1;1H日\x1b[1;3Hab\x1b[0m"),
    "the same look together, and blanks with what is beside them": (
        [],
        [[("a", RED), (" b", RED + BOLD), ("c ", RED)], [("d", RED + BOLD)]],
        "\x1b[31;44m\x1b[1;1Ha \x1b[Cc \x1b[1m\x1b[1;3Hb\x1b[2;1Hd\x1b[0m",
    ),
    "all that is beside several columns": ([WIDE_TEXT], [[("日本", PLAIN), ("ac", PLAIN)]], "\x1b[1;1H日本\x1b[1;5Hac"),
    "the place behind what may be wider": (
        [],
        [[("ab", PLAIN), ("e\u0301", PLAIN), ("cd", PLAIN)]],
        "\x1b[1;1Habe\u0301\x1b[1;4Hcd",
    ),
    "another line": ([HELLO], [HELLO, WORLD], "\x1b[2;1Hhello world"),
    "more columns": ([[("ab", PLAIN)]], [[("abcdefgh", PLAIN)]], "\x1b[1;3Hcdefgh"),
    "looks in the order that sets least": (
        [],
        [[("b", RED + BOLD), ("a", RED)]],
        "\x1b[31;44m\x1b[1;2Ha\x1b[1m\x1b[1;1Hb\x1b[0m",
    ),
    "a blank before what has its background": ([], [[(" b", RED)]], "\x1b[31;44m\x1b[1;1H b\x1b[0m"),
    "no colour of a blank": ([], [[("a", Style.parse("red")), (" ", ON_BLUE)]], "\x1b[31m\x1b[1;1Ha\x1b[44m \x1b[0m"),
    "no cells of another look, where a move is longer": (
        [[("a", PLAIN), ("b", RED), ("c", PLAIN)], [("de", PLAIN), ("f", RED)]],
        [[("A", PLAIN), ("b", RED), ("C", PLAIN)], [("De", PLAIN), ("F", RED)]],
        "\x1b[1;1HA\x1b[CC\x1b[2;1HD\x1b[31;44m\x1b[CF\x1b[0m",
    ),
    "few cells where a move is longer": ([WORLD], [[("HellO worlD", PLAIN)]], "\x1b[1;1HHellO\x1b[5CD"),
    "a move where as many cells are as long": ([WORLD], [[("Hello-world", PLAIN)]], "\x1b[1;1HH\x1b[4C-"),
    "the place behind the last column": ([], [[("ab", PLAIN)], [("cd", PLAIN)]], "\x1b[1;1Hab\x1b[2;1Hcd"),
    "one down and back": (
        [BLANK] * 12,
        [BLANK] * 10 + [[(" " * 10 + "ab" + " " * 8, PLAIN)]] * 2,
        "\x1b[11;11Hab\x1b[B\b\bab",
    ),
    "one down and on": (
        [BLANK] * 12,
        [BLANK] * 10 + [[(" " * 10 + "a" + " " * 9, PLAIN)], [(" " * 13 + "b" + " " * 6, PLAIN)]],
        "\x1b[11;11Ha\x1b[B\x1b[2Cb",
    ),
    "halves of one colour as a blank": ([], [[("▀", Style.parse("red on red"))]], "\x1b[41m\x1b[1;1H \x1b[0m"),
    "no halves turned with the terminal's own colours": (
        [],
        [[("▀", Style.parse("red")), ("▀", ON_BLUE)]],
        "\x1b[31m\x1b[1;1H▀\x1b[39;44m▀\x1b[0m",
    ),
    "no halves turned that are more than their colours": ([], [[("▀", BLUE + BOLD)]], "\x1b[1;34;41m\x1b[1;1H▀\x1b[0m"),
    "a full block as a blank": ([], [[("█ ", RED)]], "\x1b[41m\x1b[1;1H \x1b[44m \x1b[0m"),
    "a full block of the terminal's own colour, which is no background": ([], [[("█", PLAIN)]], "\x1b[1;1H█"),
}


@pytest.mark.parametrize(("before", "after", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_what_is_written(before: list[Line], after: list[Line], text: str) -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    frame.write(full(before))
    assert frame.write(full(after)) == text


def test_all_is_written_again_once_it_was_forgotten() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    first = frame.write(full([HELLO]))
    assert "hello" in first
    frame.forget()
    assert frame.write(full([HELLO])) == first


def plain(text: str) -> str:
    """What is written, without its looks."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_part_of_a_line_changes_nothing_beside_it() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    frame.write(full([[("hello world", RED)]]))
    update = ChopsUpdate([{0: None, 6: Strip([Segment("WORLD", RED)])}], [(0, 6, 9)], [[6, 11]])
    assert plain(frame.write(update)) == "\x1b[1;7HWOR"


@pytest.mark.parametrize(
    ("first", "last", "expected", "rest"),
    [
        (0, 6, "\x1b[1;1HHELLO", "\x1b[1;7HWORLD"),
        (0, 7, "\x1b[1;1HHELLO\x1b[CW", "\x1b[1;8HORLD"),
        (0, 11, "\x1b[1;1HHELLO\x1b[CWORLD", ""),
        (6, 11, "\x1b[1;7HWORLD", "\x1b[1;1HHELLO"),
    ],
)
def test_a_part_that_begins_where_a_span_ends_is_left_alone(first: int, last: int, expected: str, rest: str) -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    frame.write(full([[("hello world", RED)]]))
    parts = {0: Strip([Segment("HELLO ", RED)]), 6: Strip([Segment("WORLD", RED)])}
    assert plain(frame.write(ChopsUpdate([parts], [(0, first, last)], [[6, 11]]))) == expected
    assert plain(frame.write(full([[("HELLO WORLD", RED)]]))) == rest


STYLES = [
    Style.parse(each)
    for each in (
        *("", "red", "on blue", "red on blue", "blue on red", "bold", "bold red on blue", "underline", "on red"),
        *("reverse", "bold underline red", "dim on red", "#123456 on #654321", "italic #123456"),
    )
]
LINE = st.lists(st.tuples(st.text(" ab▀▄é", min_size=1, max_size=6), st.sampled_from(STYLES)), max_size=8)


def check_seen(screens: Sequence[list[Line]]) -> None:
    """Screens after each other are seen as if the terminal was empty before each."""
    frame, terminal = Frame(ColorSystem.TRUECOLOR), Terminal(20)
    for screen in screens:
        cells = [[(character, style) for text, style in line for character in text] for line in screen]
        lines = [[*line, *[(" ", PLAIN)] * 20][:20] for line in cells]
        terminal.write(frame.write(full(lines)))
        bare = Terminal(20)
        for y, line in enumerate(lines):
            rendered = [style.render(text, color_system=ColorSystem.TRUECOLOR) for text, style in line]
            bare.write(f"\x1b[{y + 1};1H{''.join(rendered)}")
        assert terminal.cells == bare.cells
        assert terminal.codes == ["", "", ""]


@pytest.mark.parametrize(
    "line",
    [
        [("a", RED + BOLD), ("b", RED + Style(underline=True))],
        [("a", RED), ("  ", Style.parse("on red")), ("b", RED)],
        [("a", RED), (" ", Style(underline=True)), ("b", BLUE)],
        [("▀", RED), (" ", BLUE), ("▄", RED), (" ", RED + Style(reverse=True)), ("█", RED + Style(reverse=True))],
    ],
    ids=["attributes", "blanks", "lines", "halves"],
)
def test_cells_beside_each_other_are_seen_as_they_are(line: Line) -> None:
    check_seen([[line], [line[::-1]]])


@COUNTS
def test_any_cells_after_any_others_are_seen_as_they_are(count: int) -> None:
    hold(count, check_seen, screens=st.lists(st.lists(LINE, min_size=3, max_size=3), min_size=1, max_size=3))


class Written:
    """Counts of the bytes that a running explorer sends; and what is seen of them, and of what Textual would send."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes, self.is_seen = 0, True
        self.terminal, self.plain = Terminal(), Terminal()
        write, console = Frame.write, Console(color_system="truecolor", force_terminal=True)

        def noted(frame: Frame, update: LayoutUpdate | ChopsUpdate) -> str:
            text = write(frame, update)
            if self.is_seen:
                self.plain.write(update.render_segments(console).replace("\n", ""))
                self.terminal.write(text)
            self.bytes += len(text.encode())
            return text

        monkeypatch.setattr(Frame, "write", noted)
        monkeypatch.setattr(GuardedApp, "is_headless", False)  # else nothing is written at all


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Written:
    return Written(monkeypatch)


async def test_the_terminal_shows_what_it_would_show_if_all_was_written(sent: Written) -> None:
    async with exploring(WIDE, model="question", whole=None) as explorer:
        for keys in (
            ["space"] * 12,
            ["right", "down", "0"],
            ["H", "right", "q"],
            ["question_mark", "q"],
            ["ctrl+t", "space"],
        ):
            await explorer.press(*keys)
            assert sent.terminal.cells == sent.plain.cells


async def test_what_is_drawn_for_a_size_that_the_terminal_has_no_more_is_not_taken_for_shown(sent, monkeypatch) -> None:
    """As where it was made smaller while the program was stopped: lines below its last are all put there."""
    async with exploring(WIDE) as explorer:
        app, screen = explorer.app, update_of(strips_of(explorer.app))
        for size, is_shown in ((app.size, True), (Size(80, 24), False)):
            monkeypatch.setattr(app, "_size", size)
            app._frame.forget()
            app._display(app.screen, screen)
            sent.bytes = 0
            app._display(app.screen, screen)
            assert (sent.bytes == 0) == is_shown


SIZES = {"d_model": 384, "heads": 12, "layers": 6, "d_ff": 1536}
SENTENCE = "Where did the old sailor hide the map of the island?"


async def keys(explorer: Explorer, sent: Written, *pressed: str) -> list[int]:
    counts = []
    for key in pressed:
        sent.bytes = 0
        await explorer.press(key)
        counts.append(sent.bytes)
    return counts


async def test_what_is_missing_is_drawn_as_missing_and_not_as_it_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async with exploring(WIDE, text=SENTENCE, model="question") as explorer:
        heads, chart = explorer.main.query_one(HeadThumbnails), explorer.main.query_one(ChartPane)
        await explorer.go("encoder.0.self_attention.query")
        assert text_of(explorer, heads)
        await explorer.go("embedding.output")
        with monkeypatch.context() as patched:
            patched.setattr(presenter, "Reading", lambda store, **_: Reading(store, here=False))
            patched.setattr(presenter.Presenter, "_ask", lambda *_: None)
            explorer.app.call_later(explorer.parts.navigation.go_to_stop, "encoder.0.self_attention.scores")
            await explorer.until(lambda: "encoder.0.self_attention.scores" in explorer.text)
            await explorer.handled()
            assert not text_of(explorer, heads)
            assert text_of(explorer, chart) == "computing"
            assert "embedding.output" not in explorer.text
        await explorer.press("space")
        assert text_of(explorer, heads)
        assert text_of(explorer, chart) != "computing"


def text_of(explorer: Explorer, widget: Widget) -> str:
    """Text inside the border of a widget, as it is on the screen."""
    region = widget.content_region
    lines = explorer.text.splitlines()[region.y : region.bottom]
    return "".join(line[region.x : region.right] for line in lines).strip()


async def test_a_key_writes_little_to_the_terminal(sent: Written) -> None:
    """On a model of the size of a small sentence encoder; a step into another layer draws all pictures of that anew."""
    sent.is_seen = False
    async with exploring(WIDE, text=SENTENCE, sizes=SIZES, whole=None) as explorer:
        await explorer.press("space", "space")
        *steps, other_layer = await keys(explorer, sent, *["space"] * 20)
        assert explorer.stop.startswith("encoder.1")
        assert max(steps) <= 8 * 1024
        assert other_layer <= 16 * 1024
        assert max(await keys(explorer, sent, "tab", "down", "right", "down", "right", "left")) <= 3 * 1024
        assert max(await keys(explorer, sent, "H")) <= 30 * 1024
        assert max(await keys(explorer, sent, "right", "down", "left")) <= 1024
        await explorer.press("escape", "0")
        assert max(await keys(explorer, sent, *["space"] * 12)) <= 17 * 1024
        assert max(await keys(explorer, sent, "down", "right", "down", "right", "left")) <= 1024


def test_very_many_styles_and_wide_texts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_frame, "MOST_LOOKS", 2)
    made = Cells.__init__
    counts = list[int]()
    monkeypatch.setattr(Cells, "__init__", lambda cells, system: (counts.append(1), made(cells, system))[1])
    check_seen([[[("a", style), ("b", STYLES[0])]] * 3 for style in STYLES])
    assert len(counts) > len(STYLES) // 3


def test_a_style_that_is_gone_is_not_taken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_frame, "MOST_KEPT", most := 5_000)
    cells, seen = Cells(ColorSystem.TRUECOLOR), set[bytes]()
    for number in range(2 * most):
        color = Color.from_rgb(number % 256, number // 256, 0)
        seen.add(cells.of([Segment("a", Style(color=color))])[0].tobytes())
        assert len(cells._known) <= most
    assert len(seen) == 2 * most
