"""What is known of a break, in lines: what it was good for, and the numbers before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from textwrap import wrap

from textual.content import Content
from textual.geometry import Size

from tui_transformer.diagnosis.breaking import Break
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.explorer.tools.breaks.effect import Beside, Effect, Row
from tui_transformer.guide.texts import step_text
from tui_transformer.session.answer_summary import LEAST, percent
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import share_bar

WORD, NUMBER, BAR = 16, 9, 24
"""Columns of a word, of a number with the space before it, and of a bar at most."""

OTHERS = 5
"""Lines that stand beside the words of the answer: lesson, heading, first step."""

QUIET = "$foreground 65%"

Lines = list[Content]


def told(each: Break, effect: Effect | None, *, there: bool, size: Size) -> Content:
    """The lesson, what becomes of the answer, the first step that changes; as much as there is room for, in that order.

    Args:
        each: What is broken.
        effect: What that makes of the model; None where it is not known yet.
        there: Whether there is anything of the kind in the model.
        size: Columns and lines.
    """
    lesson = [Content.styled(line, "bold") for line in wrap(each.lesson, max(size.width, 1))]
    if effect is None:
        parts = [lesson, [Content("…" if there else f"Not here: {each.absent}.")]]
    else:
        parts = [lesson, *_parts(effect, size)]
    return Content("\n").join(_within(parts, size.height))


def _within(parts: Sequence[Lines], height: int) -> Lines:
    """The first parts that there is room for; apart from each other where there is room for that too."""
    ends = list(accumulate(map(len, parts)))
    shown = parts[: max(sum(end <= height for end in ends), 1)]
    apart = [Content("")] if ends[len(shown) - 1] + len(shown) - 1 <= height else []
    return [line for place, part in enumerate(shown) for line in (*apart[: place > 0], *part)]


def _parts(effect: Effect, size: Size) -> Iterator[Lines]:
    width = size.width
    if effect.answers is not None:
        yield [*_answer(effect.words[: max(size.height - OTHERS, 1)], width)]
    if not effect.step:
        yield [Content("Nothing changes in this sentence.")]
        return
    cell = f"{effect.step}[{', '.join(map(str, effect.index))}]"
    numbers = f"{spoken(effect.before)} → {spoken(effect.after)}"
    follows = f"{effect.changed} of {effect.steps} steps change"
    first = f"first: {step_text(effect.step).label}, most of all {cell} {numbers} · {follows}"
    yield [Content(line) for line in wrap(visible(first), max(width, 1))]
    for row in effect.rows:
        yield [*_row(row, width)]


def _answer(words: Sequence[Beside], width: int) -> Iterator[Content]:
    """The most likely words before and after, with bars where there is room."""
    bar = max(min((width - WORD) // 2 - NUMBER - 2, BAR), 0)
    side = NUMBER + 2 + bar
    yield Content.styled(f"{fit('the answer', WORD)}{fit('   before', side)}{fit('   after', side)}".rstrip(), QUIET)
    for word in words:
        both = (f"{_share(share):>{NUMBER}} {share_bar(share, bar)} " for share in (word.before, word.after))
        yield Content(f"{fit(word.label, WORD)}{''.join(both)}".rstrip())


def _row(row: Row, width: int) -> Iterator[Content]:
    """A row before and after."""
    count = max(min((width - WORD) // NUMBER, len(row.cells)), 1)
    first = min(max(row.at - count // 2, 0), len(row.cells) - count)
    shown, here = row.cells[first : first + count], row.at - first
    head = f", head {row.index[0]}" if len(row.index) > 2 else ""
    of = f", row {row.of}" if row.of else ""
    yield Content.styled(fit(f"{step_text(row.step).label}{head}{of}", width).rstrip(), QUIET)
    labels = (f" {fit(each.label, NUMBER - 1, 'right')}" for each in shown)
    yield Content.styled(" " * WORD + "".join(labels), QUIET)
    for name in ("before", "after"):
        numbers = [f" {_short(getattr(each, name)):>{NUMBER - 1}}" for each in shown]
        left, right = "".join(numbers[:here]), "".join(numbers[here + 1 :])
        yield Content.assemble(fit(f"  {name}", WORD), left, (numbers[here], "bold $accent"), right)


def _short(value: float) -> str:
    return next((text for digits in (3, 2) if len(text := spoken(value, digits)) < NUMBER), spoken(value, 1))


def _share(share: float) -> str:
    return in_percent(share, ".2%") if share >= LEAST else percent(share)
