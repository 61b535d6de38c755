"""A screen is composed of what is seen of it, and of an update only what changed is asked for.

Of Textual 8.2: for an update, all lines of all widgets between the first line that changed and the last are asked for
and cut into pieces, also of those that lie behind others, as containers do; each piece makes seven caches that hardly
one of them uses; each line of a widget looks for every effect that a style sheet can have; and a title draws all lines
of its widget. Together that is nearly half of what a key costs. And where lines are asked for between two updates, a
dialog does not know what is behind it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual._border import get_box
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.app import App
from textual.color import Color
from textual.content import Content, ContentType
from textual.css.model import RuleSet, SelectorType
from textual.css.styles import RenderStyles, StylesBase
from textual.css.stylesheet import Stylesheet
from textual.css.types import EdgeType
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.style import Style as TextualStyle
from textual.widget import Widget
from textual.widgets._tooltip import Tooltip

from tui_transformer.explorer.guard.event_queue import (
    bubble_to_who_listens,
    call_from_thread,
    forward_to_who_listens,
    handlers,
)
from tui_transformer.explorer.guard.scroll_bars import kept_lines, with_room
from tui_transformer.records import dataclass

Spans = list[tuple[int, int]]
"""Parts of a line, each by its first column and the one behind its last, from left to right."""


def _wanted_lines(self: Compositor, crop: Region, is_rendered_line: Callable[[int], bool]) -> list[dict[int, Strip]]:
    lines = range(max(crop.y, 0), min(crop.bottom, len(self.cuts)))
    pieces = _composed(self, {y: [(0, self.size.width)] for y in lines if is_rendered_line(y)})
    return [pieces.get(y, {}) for y in range(len(self.cuts))]


def _partial_update(self: Compositor) -> ChopsUpdate | None:
    """What changed since the last time, from edge to edge of what lies there; None where nothing did."""
    cuts, spans = self.cuts, list(self._regions_to_spans(self._dirty_regions))
    self._dirty_regions.clear()
    if not spans:
        return None
    wanted: dict[int, Spans] = {}
    for y, first, last in spans:
        edges, line = cuts[y], wanted.setdefault(y, [])
        start, end = edges[bisect_right(edges, first) - 1], edges[min(bisect_left(edges, last), len(edges) - 1)]
        if line and start < line[-1][1]:
            start, _ = line.pop()
        line.append((start, end))
    pieces = _composed(self, wanted)
    ends = {y: [start + strip.cell_length for start, strip in line.items()] for y, line in pieces.items()}
    lines = range(len(cuts))
    return ChopsUpdate([pieces.get(y, {}) for y in lines], spans, [ends.get(y, []) for y in lines])


def _composed(compositor: Compositor, wanted: dict[int, Spans]) -> dict[int, dict[int, Strip]]:
    """What is seen in the parts of lines that are wanted, by its first column; what is in front hides the rest."""
    pieces: dict[int, dict[int, Strip]] = {}
    for widget, (region, clip) in compositor.visible_widgets.items():
        seen = region.intersection(clip)
        left, right = seen.column_span
        lines = [y for y in seen.line_range if (spans := wanted.get(y)) and spans[0][0] < right and spans[-1][1] > left]
        if not lines:
            continue
        if isinstance(widget, Screen):  # whoever asks, it shows the screens behind it
            behind = widget.app._background_screens
            visible_screen_stack.set(behind[: behind.index(widget)] if widget in behind else behind)
        first, height = lines[0], lines[-1] + 1 - lines[0]
        strips = widget.render_lines(Region(left - region.x, first - region.y, seen.width, height))
        for y in lines:
            line, strip = pieces.setdefault(y, {}), strips[y - first]
            for start, end in _taken(wanted[y], left, right):
                line[start] = _part(strip, start - left, end - left)
    return {y: dict(sorted(line.items())) for y, line in pieces.items()}


def _taken(spans: Spans, left: int, right: int) -> Spans:
    """The parts of spans that lie between two columns, which are taken out of them."""
    taken, rest = list[tuple[int, int]](), list[tuple[int, int]]()
    for start, end in spans:
        if end <= left or right <= start:
            rest.append((start, end))
            continue
        if start < left:
            rest.append((start, left))
        if right < end:
            rest.append((right, end))
        taken.append((max(start, left), min(end, right)))
    spans[:] = rest
    return taken


def _part(strip: Strip, start: int, end: int) -> Strip:
    """A part of a strip: mostly all of it, or all but the few segments that a scroll bar or a border has beside it."""
    segments, width = strip._segments, strip.cell_length
    first, last = 0, len(segments)
    while width > end:
        last -= 1
        width -= segments[last].cell_length
    if width == end and start:
        first = last
        while first and width > start:
            first -= 1
            width -= segments[first].cell_length
    if width != (start or end):
        return strip.crop(start, end)
    return strip if last - first == len(segments) else Strip(segments[first:last], end - start)


def strips_of(app: App[Any]) -> list[Strip]:
    """The lines that the screen in front shows."""
    return list(app.screen._compositor.render_strips())


def update_of(strips: Sequence[Strip]) -> LayoutUpdate:
    """An update that shows these lines from the first on."""
    width = max((strip.cell_length for strip in strips), default=0)
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, width, len(strips)))


@dataclass(frozen=True)
class Frame:
    """Where the lines of content lie in a widget, and what stands beside each of them."""

    lines: range
    left: list[Segment]
    right: list[Segment]
    ground: Style


def _frame(styles: StylesBase, size: Size, base: Color, background: Color, opacity: float) -> Frame | None:
    """The frame of a widget without effects and padding; None of others."""
    is_plain = opacity == 1.0 == styles.text_opacity and not styles.tint.a and not styles.has_rule("hatch")
    if not is_plain or any(styles.padding) or any(edge for edge, _ in styles.outline):
        return None
    inner, outer = TextualStyle(background=base + background), TextualStyle(background=base)
    (top, _), right, (bottom, _), left = styles.border

    def side(edge: EdgeType, color: Color, at: int) -> list[Segment]:
        return [get_box(edge, inner, outer, TextualStyle(foreground=base + color))[1][at]] if edge else []

    lines = range(int(bool(top)), size.height - int(bool(bottom)))
    return Frame(lines, side(*left, 0), side(*right, 2), inner.rich_style)


def _render(self: Any, styles: StylesBase, size: Size, base: Color, background: Color, *more: Any, **named: Any) -> Any:
    look = cast("RenderStyles", styles)._cache_key, size, base, background, named["opacity"]
    if getattr(self, "look", None) != look:
        self.look, self.frame = look, _frame(styles, size, base, background, named["opacity"])
    return USUAL[StylesCache, "render"](self, styles, size, base, background, *more, **named)


def _render_line(self: Any, styles: StylesBase, y: int, size: Size, content_size: Size, *more: Any) -> Strip:
    """A line of a widget: of one without effects, its content between the sides of the border."""
    frame: Frame | None = self.frame
    if frame is None or y not in frame.lines:
        return cast("Strip", USUAL[StylesCache, "render_line"](self, styles, y, size, content_size, *more))
    at, (width, height) = y - frame.lines.start, content_size
    line = more[3](at).adjust_cell_length(width, frame.ground) if at < height else Strip.blank(width, frame.ground)
    if width == size.width and not frame.left and not frame.right:
        return line
    return Strip([*frame.left, *line, *frame.right], size.width)


def _make_strip(self: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    """A strip whose caches are dictionaries, which cost a tenth of Textual's and have what it asks of them."""
    lean = cast("Any", self)
    lean._segments, lean._cell_length = list(segments), cell_length
    lean._divide_cache, lean._crop_cache, lean._crop_extend_cache, lean._offsets_cache = {}, {}, {}, {}
    lean._style_cache, lean._filter_cache, lean._line_length_cache = {}, {}, {}
    lean._render_cache = lean._link_ids = lean._cell_count = None


def _set_title(self: Any, widget: Widget, title: Text | ContentType | None) -> None:
    """Write a title into the border; only its line is drawn again, and none where the title is the same."""
    text = Content.from_rich_text(title) if isinstance(title, Text) else title
    now = None if text is None else widget.render_str(text).expand_tabs(4).split()[0]
    before: Content | None = getattr(widget, self._internal_name, None)
    if now is before or (now is not None and before is not None and now.is_same(before)):
        return
    setattr(widget, self._internal_name, now)
    width, height = widget.outer_size
    line = 0 if self._internal_name == "_border_title" else height - 1
    widget.refresh(Region(0, line, width, 1).translate(-widget.content_offset))


def _kept_by_styles(name: str) -> property:
    """What follows from the styles of a node and of all that hold it, found anew only where one of them changed."""
    find, kept_as = vars(DOMNode)[name].fget, f"_kept_{name}"

    def value(node: DOMNode) -> Any:
        styles = [each.styles._cache_key for each in node.ancestors_with_self]
        kept = vars(node).get(kept_as)
        if kept is None or kept[0] != styles:
            kept = vars(node)[kept_as] = styles, find(node)
        return kept[1]

    return property(value)


def _draw_in_time(self: Screen[Any]) -> None:
    """Draw what has changed, but where more is about to change: then it is drawn together a moment later."""
    in_turn = getattr(self.app, "in_turn", None)
    if in_turn is None or not in_turn.holds:
        USUAL[Screen, "_on_timer_update"](self)


def _clear_tooltip(self: Screen[Any]) -> None:
    """Hide the tip under the mouse, as at every key; where there is none, Textual makes an error of it first."""
    if any(isinstance(child, Tooltip) for child in self._nodes):
        USUAL[Screen, "_clear_tooltip"](self)


def _handle(self: Any, name: str, message: Message) -> Iterator[tuple[type, Callable[..., Any]]]:
    """The methods that handle a message: Textual looks through all classes of a widget for each, and once it rests."""
    kind: Any = type(self)
    of: Any = type(message)
    found = handlers(kind, name, of)
    if found is None:
        yield from USUAL[MessagePump, "_get_dispatch_methods"](self, name, message)
        return
    for each, method in found:
        if message._no_default_action:
            return
        yield each, method.__get__(self, each)


THEMES_KEPT = 4
"""Sets of variables, one for each theme, whose rules are kept."""

_RULES: dict[tuple[tuple[str, str], ...], dict[object, list[RuleSet]]] = {}


def _parse_rules(self: Any, css: str, *more: Any, **named: Any) -> list[RuleSet]:
    """Rules of a widget's style sheet, read once: Textual keeps 64 of them, of one app, and reads all for each new."""
    variables, rules = vars(self).get("_kept_rules", (None, {}))
    if variables is not self._variables:
        key = tuple(self._variables.items())
        if key not in _RULES and len(_RULES) >= THEMES_KEPT:
            del _RULES[next(iter(_RULES))]
        rules = _RULES.setdefault(key, {})
        self._kept_rules = self._variables, rules
    sheet = css, more, tuple(named.items())
    if sheet not in rules:
        rules[sheet] = USUAL[Stylesheet, "_parse_rules"](self, css, *more, **named)
    return cast("list[RuleSet]", rules[sheet])


def read_style_sheets(app: App[Any], widgets: Iterable[Widget]) -> None:
    """Read the sheets of widgets that are about to come; read later, what they change would be styled twice."""
    for widget in widgets:
        widget._post_register(app)


STYLES_KEPT = 1 << 13
"""Nodes in their places whose styles are kept, also for the next app and for screens that are opened again."""

_STYLES: dict[object, tuple[list[bool], Any]] = {}
WATCHED = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""What Textual notes of a node beside its styles: which of its states its rules ask about."""


def _apply(self: Any, node: DOMNode, *, animate: bool = False, **_: object) -> None:
    """Style a node; not again while it, and what holds it, is all that its rules ask about as it was the last time.

    Textual styles all of a screen anew when a class of it changes, though it tells few widgets apart. What was found
    for another in the same place is taken, without a look through all rules.
    """
    kind, way = (type(node), node.id, node.classes), cast("list[Any]", node.ancestors_with_self)
    rules, classes, states = _asked(self, kind, node)
    names = [(type(each), each.id, classes & each._classes) for each in way]
    are = [
        frozenset(state for state in states & each._PSEUDO_CLASSES.keys() if each._PSEUDO_CLASSES[state](each))
        for each in way
    ]
    seen = kind, rules, (*names, *are)
    if vars(node).get("_styled") == (way, seen) and isinstance(node, Widget):
        node.notify_style_update()
        return
    vars(node)["_styled"] = way, seen
    if (kept := _STYLES.get(seen)) is not None:
        watched, styles = kept
        vars(node).update(zip(WATCHED, watched, strict=True))
        self.replace_rules(node, styles, animate=animate)
        self._process_component_classes(node)
        return
    found: dict[object, Any] = {}
    USUAL[Stylesheet, "apply"](self, node, animate=animate, cache=found)
    for styles in found.values():
        if len(_STYLES) >= STYLES_KEPT:
            _STYLES.clear()
        _STYLES[seen] = [getattr(node, name) for name in WATCHED], styles


def _asked(self: Any, kind: object, node: DOMNode) -> tuple[tuple[RuleSet, ...], frozenset[str], set[str]]:
    """The rules for a node and its parts, with the classes, and the states such as `focus`, that they ask about."""
    rules: list[RuleSet] = self.rules
    whose, asked = vars(self).get("_asked", (None, {}))
    if whose is not rules:
        asked = {}
        self._asked = rules, asked
    if kind not in asked:
        names = node._selector_names.union([f".{part}" for part in node._get_component_classes()])
        told = tuple(dict.fromkeys(rule for name in sorted(names) for rule in self.rules_map.get(name, ())))
        selectors = [selector for rule in told for each in rule.selector_set for selector in each.selectors]
        classes = frozenset(each.name for each in selectors if each.type is SelectorType.CLASS)
        asked[kind] = told, classes, set().union(*[rule.pseudo_classes for rule in told])
    return cast("tuple[tuple[RuleSet, ...], frozenset[str], set[str]]", asked[kind])


LEAN: Mapping[tuple[type, str], Any] = {
    (Compositor, "_render_chops"): _wanted_lines,
    (Compositor, "render_partial_update"): _partial_update,
    (StylesCache, "render"): _render,
    (StylesCache, "render_line"): _render_line,
    (Strip, "__init__"): _make_strip,
    (type(vars(Widget)["border_title"]), "__set__"): _set_title,
    (Screen, "_clear_tooltip"): _clear_tooltip,
    (Screen, "_on_timer_update"): _draw_in_time,
    (DOMNode, "background_colors"): _kept_by_styles("background_colors"),
    (DOMNode, "rich_style"): _kept_by_styles("rich_style"),
    (App, "call_from_thread"): call_from_thread,
    (MessagePump, "_get_dispatch_methods"): _handle,
    (Message, "_bubble_to"): bubble_to_who_listens,
    (Widget, "_forward_event"): forward_to_who_listens,
    (Stylesheet, "_parse_rules"): _parse_rules,
    (Stylesheet, "apply"): _apply,
    (RuleSet, "__hash__"): object.__hash__,  # the same, without a call of Python for each rule and widget
    (Widget, "_refresh_scrollbars"): with_room(Widget._refresh_scrollbars),
    (ScrollBar, "render_lines"): kept_lines(Widget.render_lines),
}
USUAL: Mapping[tuple[type, str], Any] = {place: getattr(*place) for place in LEAN}
"""What is done in the place of Textual's methods, in this process and for all screens; and Textual's own."""


def compose_leanly() -> None:
    """Let all screens be composed so."""
    for place, method in LEAN.items():
        setattr(*place, method)
