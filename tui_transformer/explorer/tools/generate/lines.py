"""The lines of text of the screen: title, heading and entries of the list of tokens, what was cut off."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tui_transformer.explorer.tools.generate.choices import Choice, Choices
from tui_transformer.explorer.tools.generate.draft import Draft
from tui_transformer.explorer.widgets.labels import Inks, spread
from tui_transformer.generation.sampling import Settings
from tui_transformer.session import answer_summary
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import share_bar

BOLD = Style(bold=True)
SHORT_TITLE = 72
"""Columns below which the title is written in fewer words."""

MARK = "▸"
WIDE_LIST, NARROW_LIST = 64, 56
"""Columns from which on the model's own probability has a column, and below which numbers are shorter."""


def settings_text(settings: Settings, *, short: bool = False) -> str:
    """How the next token is chosen: `greedy`, or `T 0.8 · top-k 40 · top-p 0.9 · seed 0`."""
    top_k = str(settings.top_k) if settings.top_k else "all"
    names, between = (("T", "k", "p", "seed"), " ") if short else (("T", "top-k", "top-p", "seed"), " · ")
    values = (f"{settings.temperature:g}", top_k, f"{settings.top_p:g}", f"{settings.seed}")
    drawing = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
    return between.join([*(drawing if settings.draws else ["greedy"]), *([] if settings.use_cache else ["no cache"])])


def title(draft: Draft, model: str, doing: str, width: int, inks: Inks) -> Text:
    """The settings, which are never cut, and the model; at the right what is being done, the speed and the position."""
    short = width < SHORT_TITLE
    settings = settings_text(draft.settings, short=short)
    left = Text("").append("" if short else " Generate  ", inks.accent).append(f" {settings}", inks.plain + BOLD)
    place, limit, speed = len(draft.state.ids), draft.limit, draft.tokens_a_second
    position = f"{place:,}/{limit:,}" if short else f"position {place:,} of {limit:,}"
    room = width - left.cell_len - 3
    parts = [position]
    for part in (doing, f"{speed:,.1f} tokens/s" if speed else ""):
        if part and cell_len(" · ".join([part, *parts])) <= room:
            parts.insert(0, part)
    return spread(left.append(f"   {model}", inks.quiet), Text(" · ".join(parts) + " ", inks.plain), width)


@dataclass(frozen=True)
class Columns:
    """The columns of the list of tokens, for a width and the largest share."""

    width: int
    largest: float

    @property
    def name(self) -> int:
        """Cells of the token."""
        return max(min(self.width // 4, 24), 8) - 2 * self.short

    @property
    def bar(self) -> int:
        """Cells of the largest share."""
        return max(self.width - self.name - 2 - 8 - (2 + self.with_model) * (self.number + 1), 4)

    @property
    def short(self) -> bool:
        """Whether numbers have fewer digits."""
        return self.width < NARROW_LIST

    @property
    def number(self) -> int:
        """Cells of a number."""
        return 7 if self.short else 8

    @property
    def with_model(self) -> bool:
        """Whether the model's own probability has a column."""
        return self.width >= WIDE_LIST

    def heading(self, inks: Inks) -> Text:
        """Names of the columns; over the bars the value of the longest."""
        bar = "0" + percent(self.largest).rjust(self.bar - 1)
        names = ("share", *(("model",) if self.with_model else ()), "logit")
        numbers = "".join(f" {name:>{self.number}}" for name in names)
        return Text(f"  {fit('token', self.name)}{'ID':>7} {fit(bar, self.bar)}{numbers}", inks.quiet, no_wrap=True)

    def entry(self, choice: Choice, name: str, bar: Style, inks: Inks, *, marked: bool) -> Text:
        """A token: its bar, or why it cannot be chosen."""
        ink = inks.quiet if choice.why else inks.plain
        name = f"{name} · {choice.note}" if choice.note else name
        line = Text("", no_wrap=True).append(f"{MARK} " if marked else "  ", inks.accent)
        line.append(fit(name, self.name), inks.accent if marked else ink).append(f"{choice.token:>7} ", inks.quiet)
        if choice.why:
            line.append(self._reason(choice.why), inks.quiet)
        else:
            line.append(share_bar(choice.share / self.largest, self.bar), bar)
            line.append(
                self._number(answer_summary.percent(choice.share) if self.short else percent(choice.share)), ink
            )
        if self.with_model:
            line.append(self._number(percent(choice.alone)), inks.quiet)
        return line.append(self._number(f"{choice.logit:.{3 - self.short}f}"), inks.quiet)

    def _reason(self, why: str) -> str:
        room = self.bar + 1 + self.number
        text = f"cut by {why}"
        return fit(text if cell_len(text) <= room else why, room)

    def _number(self, text: str) -> str:
        return f" {text:>{self.number}}"


def percent(share: float) -> str:
    """A share with two decimals; what is small but not nothing is not written as 0."""
    text = f"{share * 100:.2f} %"
    return "<0.01 %" if text == "0.00 %" and share else text


def facts(draft: Draft, choices: Choices) -> str:
    """How many tokens can be chosen and what cuts off the others; which rules acted; why the text ends."""
    cut = [f"{reason} cuts {count:,}" for reason, count in choices.cut.items()]
    silent = [f"{rule} acted" for rule in draft.state.rules if rule not in choices.cut]
    by_hand = ["chosen by hand"] if draft.by_hand else []
    first = f"{choices.left:,} of {choices.total:,} can be chosen"
    taken = [] if draft.settings.draws else ["greedy takes the first"]
    return " · ".join([*by_hand, first, *taken, *cut, *silent])


def drawn(draft: Draft, name: str) -> str:
    """The number that was drawn, and between which sums of shares, in order of ID, it fell; "" where none was."""
    draw = draft.state.draw
    if draw is None:
        return ""
    share = f"the share of {name}" + (f" ({draw.token})" if name != str(draw.token) else "")
    return f"r = {draw.number:.4f} falls between {draw.low:.4f} and {draw.high:.4f}, Σ of shares by ID: {share}"


def next_title(draft: Draft, name: str) -> str:
    """Title of the list: the next token, or the one that was written here."""
    place = len(draft.state.ids)
    if draft.chosen is not None:
        return f"Position {place:,}: {name} was written"
    if draft.state.finished is not None:
        return f"Position {place:,}: the text ends, {draft.state.finished}"
    return f"Position {place:,}: the next token"


def source_line(text: str, width: int, inks: Inks) -> Text:
    """The sentence that an encoder reads."""
    return Text("source  ", inks.quiet, no_wrap=True).append(fit(visible(text), max(width - 8, 0)), inks.plain)
