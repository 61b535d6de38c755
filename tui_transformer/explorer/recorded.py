"""What a recording is written as: pictures, a film for a terminal, a moving picture, or one page for a browser."""

from __future__ import annotations

import copy
import html
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.strip import Strip

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.compositor import update_of
from tui_transformer.explorer.guard.frame import Frame
from tui_transformer.files import is_folder, make_folder, read_regular, write_whole
from tui_transformer.records import dataclass
from tui_transformer.report.export import png_drawing
from tui_transformer.text.display import visible
from tui_transformer.views.view import luminance

EXTRA = "pip install 'tui-transformer[record]'"
TEMPLATE, LARGEST = Path(__file__).with_name("recorded.html"), 1 << 20
FONT = "DejaVu Sans Mono"
WIDTH = 1280
"""Pixels of a moving picture."""

MOST_COLORS = 255
"""Of a GIF, which has one more that is left as it was."""

LIGHT_FRAME = copy.copy(SVG_EXPORT_THEME)
"""What is around a light screen, and the ink of what has no colour of its own."""
LIGHT_FRAME.background_color, LIGHT_FRAME.foreground_color = ColorTriplet(228, 228, 228), ColorTriplet(41, 41, 41)


@dataclass(frozen=True)
class Shot:
    """What the explorer shows at one moment.

    Attributes:
        number: From 1.
        name: Of the stop, or the key that was pressed.
        title: Of the stop, or what the key did.
        seconds: For how long it is shown.
        strips: The lines of the screen.
        of: How many there are; 0 where that is not known.
        in_light: The same lines in the light theme, where they are in the dark one and both are wanted.
    """

    number: int
    name: str
    title: str
    seconds: float
    strips: Sequence[Strip]
    of: int = 0
    in_light: Sequence[Strip] = ()


Packed = tuple[str, tuple[int, ...], tuple[Style | None, ...]]
"""A line of a screen to be kept: its text, and the lengths and looks of its parts. A strip keeps much beside these."""


def packed(strip: Strip) -> Packed:
    """A line to be kept."""
    lengths, looks = list[int](), list[Style | None]()
    for text, style, _ in strip:
        if looks and looks[-1] == style:
            lengths[-1] += len(text)
        else:
            lengths.append(len(text))
            looks.append(style)
    return strip.text, tuple(lengths), tuple(looks)


def unpacked(line: Packed) -> Strip:
    """A line that was kept."""
    text, lengths, looks = line
    ends = accumulate(lengths)
    return Strip([Segment(text[end - size : end], look) for size, end, look in zip(lengths, ends, looks, strict=True)])


class Recorded:
    """A form of a recording; written as a whole at the end, or picture by picture.

    Attributes:
        moves: Whether it is seen by itself, one screen after another, so that steps may be seen on their way.
    """

    moves: ClassVar[bool] = False

    def add(self, shot: Shot) -> None:
        """Add a screen."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write what is not written yet."""


def file_name(shot: Shot) -> str:
    """`03-softmax`, and `003-softmax` of a hundred: of letters, digits and dashes, so that names are in order."""
    digits = max(len(str(shot.of)), 2)
    return f"{shot.number:0{digits}}-{re.sub(r'[^A-Za-z0-9_]+', '-', shot.name).strip('-')[:60] or 'stop'}"


class Pictures(Recorded):
    """A folder with an SVG for every screen, and a PNG where it can be drawn."""

    def __init__(self, folder: Path, note: Callable[[str], None]) -> None:
        self._folder, self._note, self._png = folder, note, png_drawing()
        make_folder(folder)
        if self._png is None:
            note(f"PNG pictures need the extra record: {EXTRA}; SVG alone is written")

    def add(self, shot: Shot) -> None:
        """Write PATH.svg, and PATH.png."""
        path, svg = self._folder / file_name(shot), svg_of(shot)
        write_whole(path.with_name(f"{path.name}.svg"), svg.encode("utf-8", errors="replace"))
        if self._png is not None:
            write_whole(path.with_name(f"{path.name}.png"), self._png(svg))
        self._note(f"wrote {path}.svg" + (" and .png" if self._png is not None else ""))


class Cast(Recorded):
    """An asciicast, version 2: a line with the size, then one for every screen with its second and its sequences.

    The format is that of asciinema (docs.asciinema.org/manual/asciicast/v2); of each screen the cells that change.
    """

    moves: ClassVar[bool] = True

    def __init__(self, path: Path, title: str) -> None:
        self._path, self._title = path, title
        self._frame, self._second = Frame(ColorSystem.TRUECOLOR), 0.0
        self._size = 0, 0
        self._lines: list[str] = []

    def add(self, shot: Shot) -> None:
        """Add a screen, and for the first one what makes room for it."""
        begin = "" if self._lines else "\x1b[?25l\x1b[2J"
        width, height = self._size  # the largest that the terminal had
        self._size = max(width, *(strip.cell_length for strip in shot.strips)), max(height, len(shot.strips))
        text = begin + self._frame.write(update_of(shot.strips))
        self._lines.append(json.dumps([round(self._second, 3), "o", text], ensure_ascii=False))
        self._second += shot.seconds

    def finish(self) -> None:
        """Write the file, with a last line so that the last screen is seen as long as it should be."""
        width, height = self._size
        head = {"version": 2, "width": width, "height": height, "title": visible(self._title), "duration": self._second}
        end = json.dumps([round(self._second, 3), "o", "\x1b[0m\x1b[?25h"])
        write_whole(
            self._path,
            "\n".join([json.dumps(head, ensure_ascii=False), *self._lines, end, ""]).encode(errors="replace"),
        )


class Animation(Recorded):
    """A moving picture: a GIF of at most 256 colours, or a PNG that moves (APNG)."""

    moves: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        png = png_drawing(WIDTH)
        try:
            from PIL import Image
        except ImportError:
            png = None
        if png is None:
            raise InputError(f"a {path.suffix} needs the extra record: {EXTRA}; or write a .cast or .html")
        self._path, self._png, self._image, self._is_gif = path, png, Image, path.suffix.lower() == ".gif"
        self._pictures: list[Any] = []
        self._seconds: list[float] = []

    def add(self, shot: Shot) -> None:
        """Draw a screen."""
        self._pictures.append(self._colored(self._image.open(io.BytesIO(self._png(svg_of(shot))))))
        self._seconds.append(shot.seconds)

    def _colored(self, picture: Any) -> Any:
        picture = picture.convert("RGB")
        return picture.quantize(MOST_COLORS, dither=self._image.Dither.NONE) if self._is_gif else picture

    def finish(self) -> None:
        """Write the file; it begins again at its end."""
        height = max(each.height for each in self._pictures)
        for place, each in enumerate(self._pictures):
            if each.height != height:  # the terminal had another size meanwhile: there is room below
                self._pictures[place] = self._colored(each.convert("RGB").crop((0, 0, WIDTH, height)))
        first, *others = self._pictures
        whole, milliseconds = io.BytesIO(), [int(1000 * each) for each in self._seconds]
        form = "GIF" if self._is_gif else "PNG"
        first.save(whole, form, save_all=True, append_images=others, duration=milliseconds, loop=0)
        write_whole(self._path, whole.getvalue())


class Page(Recorded):
    """One HTML file that needs nothing else: the screens as text, stepped by keys, in light and in dark.

    Of all lines each is kept once, as its text, and lengths and looks of its parts.
    """

    def __init__(self, path: Path, title: str) -> None:
        self._path, self._title = path, title
        self._lines: dict[tuple[Any, ...], int] = {}
        self._looks: dict[str, int] = {}
        self._screens: dict[str, list[list[int]]] = {}
        self._titles: list[str] = []
        self._theme = ""

    def add(self, shot: Shot) -> None:
        """Add a screen as it is, on a page as light as the first one, and in light colours where it has these too."""
        self._theme = self._theme or ("light" if _is_light(shot.strips) else "dark")
        self._titles.append(shot.title)
        for theme, strips in ((self._theme, shot.strips), ("light", shot.in_light)):
            if strips:
                self._screens.setdefault(theme, []).append([self._line(strip) for strip in strips])

    def _line(self, strip: Strip) -> int:
        text, lengths, styles = packed(strip)
        looks = [self._looks.setdefault(_css(style or Style()), len(self._looks)) for style in styles]
        parts = [each for part in zip(lengths, looks, strict=True) for each in part]
        return self._lines.setdefault((text, *parts), len(self._lines))

    def finish(self) -> None:
        """Write the file."""
        data = {
            "titles": self._titles,
            "screens": self._screens,
            "lines": [*self._lines],
            "looks": [*self._looks],
        }
        packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        template = read_regular(TEMPLATE, LARGEST).decode()
        parts = {"title": html.escape(visible(self._title)), "data": packed}
        page = re.sub(r"\{\{(title|data)\}\}", lambda found: parts[found[1]], template)
        write_whole(self._path, page.encode("utf-8", errors="replace"))


def _css(style: Style) -> str:
    front, back = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
    ink, page = ("var(--page)", "var(--ink)") if style.reverse else ("", "")  # of what has no colour of its own
    ink, page = _hex(front) or ink, _hex(back) or page
    parts = [
        f"color:{ink}" if ink else "",
        f"background:{page}" if page else "",
        "font-weight:bold" if style.bold else "",
        "font-style:italic" if style.italic else "",
        "text-decoration:underline" if style.underline else "",
        "opacity:.6" if style.dim else "",
    ]
    return ";".join(filter(None, parts))


def _hex(color: Color | None) -> str:
    return color.get_truecolor().hex if color and not color.is_default else ""


def form_of(path: Path, title: str, note: Callable[[str], None]) -> Recorded:
    """The form that the ending of a path asks for; a folder of pictures where it has none.

    Raises:
        InputError: There is no such form, or a library for it is missing.
    """
    forms: Mapping[str, Callable[[], Recorded]] = {
        "": lambda: Pictures(path, note),
        ".cast": lambda: Cast(path, title),
        **dict.fromkeys((".gif", ".apng", ".png"), lambda: Animation(path)),
        ".html": lambda: Page(path, title),
    }
    ending = "" if is_folder(path) else path.suffix.lower()
    if ending not in forms:
        known = ", ".join(filter(None, forms))
        raise InputError(f"{path}: a recording is a folder of pictures, or a file that ends in {known}")
    return forms[ending]()


def svg_of(shot: Shot) -> str:
    """A screen as a picture, as Textual exports it, that loads nothing."""
    console = Console(
        width=max(strip.cell_length for strip in shot.strips),
        height=len(shot.strips),
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
        safe_box=False,
    )
    console.print(update_of(shot.strips))
    return self_contained(console.export_svg(title=shot.title, theme=LIGHT_FRAME if _is_light(shot.strips) else None))


def _is_light(strips: Sequence[Strip]) -> bool:
    """Whether the colour behind most of a screen is a light one; not where there are no colours."""
    behind = Counter[ColorTriplet]()
    for segment in (segment for strip in strips for segment in strip):
        if segment.style and segment.style.bgcolor and not segment.style.bgcolor.is_default:
            behind[segment.style.bgcolor.get_truecolor()] += segment.cell_length
    return any(luminance(color) > 0.5 for color, _ in behind.most_common(1))


def self_contained(svg: str) -> str:
    """A picture without the web fonts and the addresses that the exporter writes into it."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return svg.replace("font-family: Fira Code, monospace", f"font-family: '{FONT}', Menlo, monospace")
