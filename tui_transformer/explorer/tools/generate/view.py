"""The text so far, the tokens that may come next, and the keys and values that are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from tui_transformer.engine.changes import Add
from tui_transformer.explorer.tools.generate.draft import Choice, Draft, GenerationView, sublayers
from tui_transformer.explorer.widgets.generation import CacheMap, TokenText, WrittenToken
from tui_transformer.explorer.widgets.labels import Inks, Written, inks_of, spread
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface, bar_style
from tui_transformer.generation.text import WINDOW, token_name, token_texts
from tui_transformer.session import answer_summary
from tui_transformer.session.steering import added, said, strength_of, track
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import share_bar

SIDE_BY_SIDE, LOW, TALL = 96, 18, 40
"""Columns from which on tokens and cache are side by side; lines below which texts are short, and from which long."""

WIDE_LIST, NARROW_LIST = 64, 56
"""Columns from which on the model's own probability has a column, and below which numbers are shorter."""


class TokenList(LineList):
    """Tokens to choose from. Keys that are pressed ahead are of the list that will be there by then."""

    waits: Callable[..., bool] = staticmethod(lambda _, **__: False)
    """Whether an action, which may be a choice, waits for those that were asked for before."""

    def action_step(self, rows: int, columns: int) -> None:
        act = partial(super().action_step, rows, columns)
        if not self.waits(act, is_choice=False):
            act()

    def action_choose(self) -> None:
        act = super().action_choose
        if not self.waits(act, is_choice=True):
            act()


class GenerateView(Vertical):
    """The choices at a place of a text; nothing is shown before the prompt was read."""

    DEFAULT_CSS = """
    GenerateView {
        #written { height: 6; padding: 0 1; }
        &.-tall #written { height: 10; }
        #source { height: 1; display: none; }
        #source.-read { display: block; }
        TokenText { height: 1fr; }
        #slider, #without, #with-line { display: none; height: 1; }
        #texts { height: 1fr; Vertical { width: 1fr; } }
        #without { padding: 0 2 0 0; }
        #without-line, #with-line { color: $foreground 65%; }
        &.-steered {
            #written { height: 9; }
            #slider, #without, #with-line { display: block; }
            #without { height: 1fr; }
        }
        &.-steered.-tall #written { height: 12; }
        #body { height: 1fr; }
        #next, #cache { width: 1fr; padding: 0 1; }
        #tokens { height: 1fr; }
        #columns, #facts, #memory { height: auto; width: 1fr; }
        #facts, #memory { color: $foreground 65%; }
        #facts { max-height: 3; }
        CacheMap { height: 1fr; }
        #tokens > .line-list--cursor, #tokens:focus > .line-list--cursor {
            background: $accent 20%;
            color: $accent;
            text-style: bold;
        }
        &:nocolor #tokens > .line-list--cursor, &:ansi #tokens > .line-list--cursor { text-style: bold underline; }

        #written, #next, #cache {
            border: round $border-blurred;
            border-title-color: $foreground 70%;
            border-subtitle-color: $foreground 60%;
            background: $background;
        }
        #next:focus-within { border: round $accent; border-title-color: $accent; border-title-style: bold; }

        &.-one #written { height: 5; }
        &.-one #cache { display: none; }
        &.-one.-cache #next { display: none; }
        &.-one.-cache #cache { display: block; }
        &.-low #written { height: 4; }
        &.-steered.-one #written { height: 8; }
        &.-steered.-low #written { height: 6; }
        &.-low #facts, &.-low #memory { display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.shown: GenerationView | None = None
        self._left_at = 0
        self._written = Written(self)

    def compose(self) -> ComposeResult:
        with Vertical(id="written") as written:
            written.border_title = "Text"
            yield Static(id="source", markup=False)
            yield Static(id="slider", markup=False)
            with Horizontal(id="texts"):
                with Vertical(id="without"):
                    yield Static("without", id="without-line", markup=False)
                    yield TokenText(id="without-text")
                with Vertical():
                    yield Static(id="with-line", markup=False)
                    yield TokenText(id="text")
        with Horizontal(id="body"):
            with Vertical(id="next"):
                yield Static(id="columns", markup=False)
                yield TokenList(id="tokens")
                yield Static(id="facts", markup=False)
            with Vertical(id="cache"):
                yield CacheMap(id="map")
                yield Static(id="memory", markup=False)

    def fit(self, size: Size) -> None:
        width, height = size
        narrow = width < SIDE_BY_SIDE or height < LOW
        self.update_classes({"-one": narrow, "-low": height < LOW, "-tall": height >= TALL})

    def turn_pane(self) -> None:
        self.toggle_class("-cache")
        if not self.has_class("-cache"):
            self.query_one(LineList).focus()

    def show(self, shown: GenerationView) -> None:
        self.shown = shown
        self.show_text(shown.draft)
        self._show_next(shown)
        self.query_one(CacheMap).show(shown.picture)
        self._written.write("memory", Text("\n".join(shown.memory)), grows=True)
        layers = len(sublayers(shown.draft.writer))
        self.query_one("#cache").border_title = f"KV cache · layer {shown.layer} of {layers}"

    def show_again(self) -> None:
        if self.shown is not None:
            self.show(self.shown)

    def leave(self) -> None:
        """Another list is on its way: the cursor starts in it as far from its start as it moves until then."""
        self._left_at = self.query_one(LineList).cursor or 0

    def show_text(self, draft: Draft) -> None:
        text, prompt = self.query_one("#text", TokenText), draft.state.prompt

        def write(text: TokenText, of: Draft) -> None:
            texts, shares = token_texts(of.writer.model, of.ids), [*([None] * prompt), *of.shares]
            text.show(list(map(WrittenToken, texts, shares)), min(len(draft.state.ids), len(texts)))

        write(text, draft)
        without, edit = draft.without, draft.steering
        if without is not None and edit is not None:
            write(self.query_one("#without-text", TokenText), without)
            self._written.write("with-line", Text(f"with {added(edit)}", no_wrap=True, overflow="ellipsis"))
        has_color = Surface.of(self.app).depth != "none"
        shade = "shaded by probability" if has_color else "bold from 50 %, underlined below 10 %"
        subtitle = f"{prompt:,} given · {len(draft.ids) - prompt:,} written, {shade}"
        self.query_one("#written").border_subtitle = Content(subtitle)
        source, inks = draft.writer.source, inks_of(self.screen)
        self.query_one("#source").set_class(bool(source), "-read")
        if source:
            words = visible("".join(token_texts(draft.writer.model, source, source=True)))
            line = Text("source  ", inks.quiet, no_wrap=True)
            self._written.write("source", line.append(fit(words, max(text.size.width - 8, 0)), inks.plain))

    def show_slider(self, edit: Add | None, end: float) -> None:
        """What is added, and where its slider is, which a key moves at once; the texts follow."""
        self.set_class(edit is not None, "-steered")
        if edit is None:
            return
        width, inks = max(self.size.width - 4, 0), inks_of(self.screen)
        slider = "" if not end else track(strength_of(edit), end, max(min(width // 2, 44), 5)) + "  0 is off"
        what = fit(visible(said(edit)), max(width - cell_len(slider) - 2, 0))
        line = Text(f"{what}  ", inks.plain, no_wrap=True).append(slider, inks.accent)
        self._written.write("slider", line)

    def _show_next(self, shown: GenerationView) -> None:
        draft, listed, inks = shown.draft, shown.choices, inks_of(self.screen)
        before, model = draft.state.ids[-WINDOW:], draft.writer.model
        tokens = self.query_one(LineList)
        columns = Columns(max(tokens.size.width - 2, 0))
        bar = bar_style(Surface.of(self.app))

        def entry(index: int) -> Text:
            choice = listed[index]
            name = token_name(model, before, choice.token)
            return columns.entry(choice, name, bar, inks, marked=choice.token == draft.marked)

        moved = (tokens.cursor or 0) - self._left_at
        tokens.show(len(listed), entry)
        marked = next(index for index, choice in enumerate(listed) if choice.token == draft.marked)
        self._left_at = tokens.cursor = max(min(marked + moved, len(listed) - 1), 0)
        self._written.write("columns", columns.heading(inks), grows=True)
        draw = drawn(draft, token_name(model, before, draft.state.candidate))
        text = "\n".join(line for line in (facts(shown), visible(draw)) if line)
        self._written.write("facts", Text(text), grows=True)
        what = "the next token" if draft.state.finished is None else f"the text ends, {draft.state.finished}"
        if draft.chosen is not None:
            what = f"{token_name(model, before, draft.marked)} was written"
        self.query_one("#next").border_title = Content(visible(f"Position {len(draft.state.ids):,}: {what}"))


def title(draft: Draft, model: str, doing: str, width: int, inks: Inks) -> Text:
    """The settings there, never cut, as `T 0.8 · top-k 40 · seed 0`, and the model; at the right what is done."""
    short = width < 72  # fewer words
    own, unkept = draft.state.settings, bool(draft.writer.why_unkept(len(draft.state.ids)))
    names, between = (("T", "k", "p", "seed"), " ") if short else (("T", "top-k", "top-p", "seed"), " · ")
    values = (f"{own.temperature:g}", own.top_k or "all", f"{own.top_p:g}", own.seed)
    drawing = [f"{name} {value}" for name, value in zip(names, values, strict=True)] if own.draws else ["greedy"]
    settings = between.join([*drawing, *([] if own.use_cache and not unkept else ["no cache"])])
    left = Text("").append("" if short else " Generate  ", inks.accent)
    left.append(f" {settings}", inks.plain + Style(bold=True))
    seconds = [state.seconds for state in draft.states[1:]]  # of the tokens that were computed one by one
    place, limit, speed = len(draft.state.ids), draft.limit, len(seconds) / sum(seconds) if sum(seconds) else 0.0
    parts = [f"{place:,}/{limit:,}" if short else f"position {place:,} of {limit:,}"]
    room = width - left.cell_len - 3
    for part in (doing, f"{speed:,.1f} tokens/s" if speed else ""):
        if part and cell_len(" · ".join([part, *parts])) <= room:
            parts.insert(0, part)
    return spread(left.append(f"   {model}", inks.quiet), Text(" · ".join(parts) + " ", inks.plain), width)


def facts(shown: GenerationView) -> str:
    """How many tokens can be chosen and what cuts off the others; which rules acted."""
    draft, total = shown.draft, shown.draft.state.logits.size
    left = total - sum(shown.cut.values())
    return " · ".join(
        [
            *(["chosen by hand"] if draft.chosen not in (None, draft.state.candidate) else []),
            f"{left:,} of {total:,} can be chosen",
            *([] if draft.state.settings.draws else ["greedy takes the first"]),
            *(f"{reason} cuts {count:,}" for reason, count in shown.cut.items()),
            *(f"{rule} acted" for rule in draft.state.rules if rule not in shown.cut),
        ]
    )


def drawn(draft: Draft, name: str) -> str:
    """The number that was drawn, and between which sums of shares, in order of ID, it fell; "" where none was."""
    draw = draft.state.draw
    if draw is None:
        return ""
    share = f"the share of {name}" + (f" ({draw.token})" if name != str(draw.token) else "")
    numbers = (draw.number, draw.low, draw.high)
    apart = (digits for digits in range(4, 13) if len({f"{each:.{digits}f}" for each in numbers}) == len(numbers))
    digits = next(apart, 4)  # as many as tell them apart: a share of many words is small
    number, low, high = (f"{each:.{digits}f}" for each in numbers)
    return f"r = {number} falls between {low} and {high}, Σ of shares by ID: {share}"


class Columns:
    """The columns of the list of tokens, each so many cells wide; a full bar is a share of 1."""

    def __init__(self, width: int) -> None:
        self.short, self.with_model = width < NARROW_LIST, width >= WIDE_LIST
        self.name, self.number = max(min(width // 4, 24), 8) - 2 * self.short, 7 if self.short else 8
        self.bar = max(width - self.name - 2 - 8 - (2 + self.with_model) * (self.number + 1), 4)

    def heading(self, inks: Inks) -> Text:
        bar = "0" + "1".rjust(self.bar - 1)
        names = ("share", *(("model",) if self.with_model else ()), "logit")
        numbers = "".join(f" {name:>{self.number}}" for name in names)
        return Text(f"  {fit('token', self.name)}{'ID':>7} {fit(bar, self.bar)}{numbers}", inks.quiet, no_wrap=True)

    def entry(self, choice: Choice, name: str, bar: Style, inks: Inks, *, marked: bool) -> Text:
        """A token: its bar, or why it cannot be chosen."""
        ink = inks.quiet if choice.why else inks.plain
        name = f"{name} · {choice.note}" if choice.note else name
        line = Text("", no_wrap=True).append("▸ " if marked else "  ", inks.accent)
        line.append(fit(name, self.name), inks.accent if marked else ink).append(f"{choice.token:>7} ", inks.quiet)
        if choice.why:
            room, text = self.bar + 1 + self.number, f"cut by {choice.why}"
            line.append(fit(text if cell_len(text) <= room else choice.why, room), inks.quiet)
        else:
            share = answer_summary.percent(choice.share) if self.short else percent(choice.share)
            line.append(share_bar(choice.share, self.bar), bar).append(f" {share:>{self.number}}", ink)
        numbers = [*([percent(choice.alone)] if self.with_model else []), f"{choice.logit:.{3 - self.short}f}"]
        return line.append("".join(f" {each:>{self.number}}" for each in numbers), inks.quiet)


def percent(share: float) -> str:
    """A share with two decimals; what is small but not nothing is not written as 0."""
    text = f"{share * 100:.2f} %"
    return "<0.01 %" if text == "0.00 %" and share else text
