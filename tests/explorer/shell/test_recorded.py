"""Recordings without a terminal: keys and tours, as a film for a terminal, a moving picture, and a page."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
from driving import NARROW, SMALL, exploring
from rich.segment import Segment
from rich.style import Style
from test_frame import Terminal
from textual.strip import Strip

from tui_transformer.cli.explore import Record
from tui_transformer.errors import InputError, UsageError
from tui_transformer.explorer.recorded import (
    Animation,
    Cast,
    Page,
    Pictures,
    Recorded,
    Shot,
    file_name,
    form_of,
    packed,
    svg_of,
    unpacked,
)
from tui_transformer.explorer.recording import Press, parse_keys, record_keys, record_tour
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.shell.themes import DARK, LIGHT
from tui_transformer.model.options import ModelOptions
from tui_transformer.report.export import png_drawing
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import suitable

SIZE = (100, 30)
MISSING = find_spec("PIL") is None or find_spec("resvg_py") is None


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session(ModelOptions("question"))


@pytest.fixture(autouse=True)
def _colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")


def record(session: Session, keys: str, *forms: Recorded, size: tuple[int, int] = SIZE) -> list[Shot]:
    shots: list[Shot] = []

    def take(shot: Shot) -> None:
        shots.append(shot)
        for form in forms:
            form.add(shot)

    assert record_keys(session, parse_keys(keys), size, "dark", take) == 0
    for form in forms:
        form.finish()
    return shots


def test_keys_are_characters_names_and_texts_in_quotes_and_what_is_none_is_refused() -> None:
    assert parse_keys('space ] esc ctrl+p "the cat" F f1') == (
        Press("space"),
        Press("]"),
        Press("escape"),
        Press("ctrl+p"),
        Press(text="the cat"),
        Press("F"),
        Press("f1"),
    )

    for keys, says in (("spcae", "'spcae' is no key"), (" ", "at least one key"), ("ctrl+", "is no key")):
        with pytest.raises(UsageError, match=re.escape(says)):
            parse_keys(keys)


def test_a_film_for_a_terminal_ends_on_the_screen_that_is_shown(session: Session, tmp_path: Path) -> None:
    shots = record(session, 'space backspace space ] enter "a?"', Cast(tmp_path / "walk.cast", "A walk"))
    names = ["space", "backspace", "space", "right_square_bracket", "enter", "a", "question_mark"]
    assert [file_name(shot) for shot in shots] == [f"{i:02}-{name}" for i, name in enumerate(["start", *names], 1)]
    head, *lines = map(json.loads, (tmp_path / "walk.cast").read_text(encoding="utf-8").splitlines())
    assert (head["version"], head["width"], head["height"], head["title"]) == (2, *SIZE, "A walk")
    seconds = [second for second, _, _ in lines]
    assert seconds == sorted(seconds)
    assert seconds[-1] == head["duration"]
    assert {kind for _, kind, _ in lines} == {"o"}
    terminal = Terminal(SIZE[0])
    for shot, (_, _, text) in zip(shots, lines, strict=False):
        terminal.write(text.replace("\x1b[?25l\x1b[2J", ""))
        for y, strip in enumerate(shot.strips):
            cells = [terminal.cells.get((y, x), ("halves",))[0] for x in range(SIZE[0])]
            shown = "".join(" " if cell == "halves" else cell for cell in cells)  # what is blank, or a half of a cell
            assert shown == re.sub("[▀▄█]", " ", strip.text.ljust(SIZE[0]))


def test_what_moves_shows_a_step_on_its_way_and_then_what_is_shown_without(session: Session) -> None:
    still, moving = list[Shot](), list[Shot]()
    keys = parse_keys("space right space")
    assert record_keys(session, keys, SIZE, None, still.append) == 0
    assert record_keys(session, keys, SIZE, None, moving.append, moves=True) == 0
    text = ["\n".join(strip.text for strip in shot.strips) for shot in moving]
    on_the_way = ["so far" in each for each in text]
    assert 0 < sum(on_the_way) == len(moving) - len(still)
    rest = [each for each, way in zip(text, on_the_way, strict=True) if not way]
    assert rest == ["\n".join(strip.text for strip in shot.strips) for shot in still]


@pytest.mark.skipif(shutil.which("asciinema") is None, reason="asciinema is not installed")
def test_its_own_player_plays_it(session: Session, tmp_path: Path) -> None:
    record(session, "space", Cast(tmp_path / "walk.cast", "A walk"))
    command = ["asciinema", "cat", str(tmp_path / "walk.cast")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "Token IDs" in done.stdout


def test_a_page_has_every_screen_as_text_in_light_and_dark_and_needs_nothing(session: Session, tmp_path: Path) -> None:
    page = Page(tmp_path / "walk.html", "A <walk>")
    shots = list[Shot]()
    keys = parse_keys("space backspace space")
    assert record_keys(session, keys, SIZE, "dark", lambda shot: (shots.append(shot), page.add(shot)), both=True) == 0
    page.finish()
    text = (tmp_path / "walk.html").read_text(encoding="utf-8")
    assert "A &lt;walk&gt;" in text
    assert not re.search(r"(src|href)\s*=|https?:|@import|url\(", text)
    data = json.loads(re.findall(r"const data = (.*);\n", text)[0])
    assert len(data["titles"]) == 4
    assert set(data["screens"]) == {"dark", "light"}
    for theme in ("dark", "light"):
        for shot, numbers in zip(shots, data["screens"][theme], strict=True):
            assert [data["lines"][number][0] for number in numbers] == [strip.text for strip in shot.strips]
    for theme, page_color in ((DARK, "background:#0b1021"), (LIGHT, "background:#f7f7f3")):
        first = data["screens"][theme.name.removeprefix("tui-")][-1]
        assert any(page_color in data["looks"][look] for number in first for look in data["lines"][number][2::2])
    for line, *parts in data["lines"]:
        assert sum(parts[::2]) == len(line)
        assert max(parts[1::2], default=0) < len(data["looks"])
    check_kept([strip for shot in shots for strip in shot.strips])


def test_keys_are_pressed_once_for_a_page_in_light_and_dark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_COLOR_SYSTEM", "")
    keys, out = 'ctrl+p "hea" enter ctrl+p', tmp_path / "walk.html"
    Record(model="question", keys=keys, out=out, size="100x30").run()
    data = json.loads(re.findall(r"const data = (.*);\n", out.read_text(encoding="utf-8"))[0])
    screens = {
        theme: ["\n".join(data["lines"][number][0] for number in numbers) for numbers in each]
        for theme, each in data["screens"].items()
    }
    assert len(screens["dark"]) == len(data["titles"])
    assert "lately" in screens["dark"][-1]
    assert "lately" not in screens["light"][1]
    assert screens["dark"] == screens["light"]


@pytest.mark.parametrize(("theme", "page"), [("light", "light"), ("solarized-light", "light"), ("nord", "dark")])
def test_what_is_around_a_screen_is_as_light_as_the_screen(session: Session, tmp_path, theme: str, page: str) -> None:
    shots, form = list[Shot](), Page(tmp_path / "walk.html", "")
    assert record_keys(session, parse_keys("space"), SIZE, theme, shots.append) == 0
    for shot in shots:
        form.add(shot)
    form.finish()
    assert f'"screens":{{"{page}":' in (tmp_path / "walk.html").read_text(encoding="utf-8")
    frame = re.search('<rect fill="#(..)', svg_of(shots[0]))
    assert frame is not None
    assert (int(frame[1], 16) > 128) is (page == "light")


def test_what_is_reversed_without_colour_is_so_on_a_page(tmp_path: Path) -> None:
    page = Page(tmp_path / "a.html", "")
    page.add(Shot(1, "a", "a", 1.0, [Strip([Segment("a", Style(reverse=True)), Segment("b", Style(bold=True))])]))
    page.finish()
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert '"looks":["color:var(--page);background:var(--ink)","font-weight:bold"]' in text


def check_kept(lines: list[Strip]) -> None:
    """Lines that are kept are few, small and the same."""
    kept = list(map(packed, lines))
    assert len(set(kept)) < len(lines) / 2
    for strip, line in zip(lines, kept, strict=True):
        again = unpacked(line)
        assert [(char, style) for text, style, _ in again for char in text] == [
            (char, style) for text, style, _ in strip for char in text
        ]
        assert len(list(again)) <= len(list(strip))


@pytest.mark.skipif(MISSING, reason="the extra record is not installed")
def test_a_moving_picture_has_a_frame_for_every_screen(session: Session, tmp_path: Path) -> None:
    from PIL import Image

    forms = (Animation(tmp_path / name) for name in ("walk.gif", "walk.png"))
    shots = record(session, "space", *forms, size=SMALL)
    for form in ("GIF", "PNG"):
        with Image.open(tmp_path / f"walk.{form.lower()}") as picture:
            assert (picture.format, getattr(picture, "n_frames", 1)) == (form, len(shots))


@pytest.mark.skipif(MISSING, reason="the extra record is not installed")
@pytest.mark.parametrize("name", ["walk.gif", "walk.GIF", "walk.png", "walk.cast"])
def test_of_a_terminal_that_changes_its_size_no_screen_is_cut(name: str, tmp_path: Path) -> None:
    shots = [
        Shot(number, "screen", "", 1.0, [Strip([Segment("█" * width, Style(color="white"))])] * height)
        for number, (width, height) in enumerate([(100, 30), (60, 30), (90, 20)], 1)
    ]
    form = form_of(tmp_path / name, "\udcff", print)
    for shot in shots:
        form.add(shot)
    form.finish()
    if name.endswith(".cast"):
        head = json.loads((tmp_path / name).read_text(encoding="utf-8").splitlines()[0])
        assert (head["width"], head["height"]) == (100, 30)
        return
    from PIL import Image

    made, highest = Image.open(io.BytesIO((tmp_path / name).read_bytes())), 0
    assert made.format == ("GIF" if name.lower().endswith("gif") else "PNG")
    for number, shot in enumerate(shots):
        alone = Image.open(io.BytesIO(cast(Any, png_drawing(1280))(svg_of(shot))))
        made.seek(number)
        assert made.height >= alone.height
        highest = max(highest, alone.height)
        pixel = (640, alone.height - 40)  # of the last line
        assert cast(Any, made.convert("RGB").getpixel(pixel))[0] == pytest.approx(
            alone.convert("RGB").getpixel(pixel)[0], abs=8
        )
    assert made.height == highest


def test_words_in_a_title_do_not_take_the_place_of_the_screens(tmp_path: Path) -> None:
    page = Page(tmp_path / "a.html", "{{data}}")
    page.add(Shot(1, "screen", "{{title}}", 1.0, [Strip([Segment("{{title}}")])]))
    page.finish()
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<title>{{data}}</title>" in text
    assert json.loads(text.partition("const data = ")[2].partition(";\n")[0])["titles"] == ["{{title}}"]


def test_what_is_missing_for_a_moving_picture_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"needs the extra record.*\.cast or \.html"):
        Animation(tmp_path / "walk.gif")


def test_a_tour_is_taken_stop_by_stop(tmp_path: Path) -> None:
    lecture = tmp_path / "mine.toml"
    stop = '[{0}]\ntitle = "{0}"\ntext = "one two three"\nstep = "{0}"\n'
    lecture.write_text(stop.format("tokens") + stop.replace("{0}", "b", 1).format("tokens"))
    session, said = open_session(ModelOptions("question")), list[str]()
    pictures, shots = Pictures(tmp_path / "pictures", said.append), list[Shot]()

    def take(shot: Shot) -> None:
        shots.append(shot)
        pictures.add(shot)

    assert record_tour(session, suitable(session, str(lecture)), SIZE, None, take) == 0
    assert [(shot.number, shot.name, shot.seconds) for shot in shots] == [(1, "tokens", 2.75), (2, "b", 2.75)]
    assert [path.name for path in sorted((tmp_path / "pictures").glob("*.svg"))] == ["01-tokens.svg", "02-b.svg"]
    assert len(said) == 2


def test_a_recording_names_its_files_in_order() -> None:
    names = [file_name(Shot(number, "a b", "", 1.0, (), total)) for total in (9, 120) for number in (1, 9)]
    assert names == ["01-a-b", "09-a-b", "001-a-b", "009-a-b"]
    many = [file_name(Shot(number, "s", "", 1.0, (), 1000)) for number in range(1, 1001)]
    assert many == sorted(many)


async def test_what_is_shown_is_recorded_between_two_presses_into_a_file_that_is_asked_for(here, monkeypatch):
    (here / "walk-01.html").write_text("mine")
    async with exploring(NARROW, model="question", preferences=Preferences()) as explorer:
        recording = explorer.parts.recording
        await explorer.press("r", "r")
        assert "everything that is shown is recorded: r r ends it" in explorer.messages[-1]
        await explorer.until(lambda: recording._screens)
        await explorer.press("space")
        await explorer.until(lambda: len(recording._screens) > 1)
        # a free name is offered, and without one it goes on
        await explorer.press("r", "r")
        assert "screens, as .cast, .gif, .png or .html" in explorer.text
        assert explorer.focused_input.value == "walk-02.html"
        await explorer.press("escape")
        assert explorer.messages[-1] == "the recording goes on: r r asks for a file"
        # while the program ends nothing is looked at
        with monkeypatch.context() as ends:
            ends.setattr(explorer.app, "_screen_stacks", {explorer.app.current_mode: []})
            recording._look()
        # what cannot be written
        await explorer.press("r", "r")
        await explorer.answer("walk.mp4")
        assert "a recording is a folder of pictures, or a file that ends in" in explorer.text
        await explorer.answer("none/walk.cast")
        await explorer.until(lambda: "not written, and the recording goes on" in str(explorer.messages))
        # what can
        await explorer.press("r", "r")
        await explorer.answer("walk.cast")
        await explorer.until(lambda: (here / "walk.cast").is_file())
    head, *screens = map(json.loads, (here / "walk.cast").read_text().splitlines())
    assert (head["width"], head["height"]) == NARROW
    assert len(screens) > 2
    assert [second for second, _, _ in screens] == sorted(second for second, _, _ in screens)
