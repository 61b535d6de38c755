"""What is known of a break in lines: its slider, both answers, the smallest change, a sentence on which it matters."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from tui_transformer.diagnosis.breaking import Break, Broken, Slider
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.explorer.tools.breaks.findings import Findings
from tui_transformer.records import replace
from tui_transformer.session.answer_summary import LEAST, percent
from tui_transformer.session.break_effect import BreakEffect
from tui_transformer.session.break_search import Turn
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.views.numbers import share_bar

WORD, NUMBER, BAR, TRACK = 16, 9, 24, 40
"""Columns of a word, of a number with the space before it, of a bar and of a slider at most."""

MOST_WORDS, TABLE = 4, 9
"""Words of both answers, and lines from which they are listed."""

RIGHT, TURNS, HERE = "┼", "╳", "●"
"""Marks of a slider: nothing is broken, the answer turns, the number."""

QUIET = "$foreground 65%"

Part = tuple[int, list[Content]]
"""Lines, and how soon they are left out where there is little room."""


def described(findings: Findings, each: Break, width: int, height: int) -> Content:
    """What is known of a break, as far as there is room for it."""
    parts = [*_parts(findings, each, width, height)]
    kept, room = set[int](), height
    for at in sorted(range(len(parts)), key=lambda place: parts[place][0]):
        if len(parts[at][1]) <= room:
            kept.add(at)
            room -= len(parts[at][1])
    return Content("\n").join(line for at in sorted(kept) for line in parts[at][1])


def _parts(findings: Findings, each: Break, width: int, height: int) -> Iterator[Part]:
    slider, effect = findings.slider(each), findings.effect(each)
    turn, elsewhere = findings.turn(each), findings.matters(each)
    yield 4, [Content.styled(fit(each.lesson, width).rstrip(), QUIET)]
    if each.name not in findings.there:
        yield 0, [Content(f"Not here: {visible(each.absent)}.")]
        return
    if slider is not None:
        yield 1, [Content.styled(track(findings.made[each.name], slider, turn, width), "bold")]
    if effect is None:
        yield 0, [Content("…")]
    elif height >= TABLE and effect.likeliest:
        yield 0, [*answer_table(effect, width)]
    else:
        yield 0, [Content.styled(f"the answer: {visible(effect.said)}", "bold")]
    if slider is not None:
        known = "the smallest change that turns the answer: …" if turn is None else turn.said(findings.made[each.name])
        yield 2, [Content(visible(known))]
    if effect is not None and not effect.turns and findings.reads_text:
        known = "a sentence on which it matters: …" if elsewhere is None else elsewhere.said
        yield 3, [Content(visible(known))]


def track(made: Broken, slider: Slider, turn: Turn | None, width: int) -> str:
    """A slider in a line: what its number does, and where it is; as far as there is room, what the marks are."""
    number = slider.usual if made.number is None else made.number
    low, high = (spoken(each, 3) for each in (slider.low, slider.high))
    title = replace(made, number=number).title
    room = max(min(width - cells(title) - len(low) - len(high) - 8, TRACK), 5)
    marks = ["─"] * room
    marks[_place(slider, slider.right, room)] = RIGHT
    if turn is not None and turn.number is not None:
        marks[_place(slider, turn.number, room)] = TURNS
    marks[_place(slider, number, room)] = HERE
    line = f"{title}   {low} {''.join(marks)} {high}"
    signs = f"   {RIGHT} {spoken(slider.right, 3)} is right" + f"   {TURNS} turns" * (TURNS in marks)
    return line + signs if cells(line) + cells(signs) <= width else fit(line, width).rstrip()


def _place(slider: Slider, number: float, room: int) -> int:
    """The column of a number among so many; one beyond the range is at its end, what is none at its beginning."""
    if slider.geometric:
        share = slider.distance(number) / slider.distance(slider.high)  # the right one is the least
    else:
        share = (number - slider.low) / (slider.high - slider.low)
    return round(min(max(0.0, share), 1.0) * (room - 1))


def answer_table(effect: BreakEffect, width: int) -> Iterator[Content]:
    """The likeliest words before and after, with bars to 1 where there is room."""
    bar = max(min((width - WORD) // 2 - NUMBER - 2, BAR), 0)
    side = NUMBER + 2 + bar
    yield Content.styled(f"{fit('the answer', WORD)}{fit('   before', side)}{fit('   after', side)}".rstrip(), QUIET)
    for word in effect.likeliest[:MOST_WORDS]:
        line = fit(effect.was.guess(word).name, WORD)
        for outcome in (effect.was, effect.becomes):
            share = outcome.guess(word).share
            text = in_percent(share, ".2%") if share >= LEAST else percent(share)
            line += f"{text:>{NUMBER}} {share_bar(share, bar)} "
        yield Content(line.rstrip())
