"""Stops that are words: the token IDs back as text with what is most likely, and the loss with its targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from textwrap import wrap
from typing import Literal

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.score import Likely, likely_at
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED, Gradients
from tui_transformer.engine.program import PROBABILITIES
from tui_transformer.engine.trace import Trace
from tui_transformer.generation.text import WINDOW, token_text
from tui_transformer.learning.recipes import answers_first
from tui_transformer.model import Model
from tui_transformer.model.targets import predicts_next
from tui_transformer.records import dataclass, field
from tui_transformer.session.answer_summary import NO_NUMBER, percent
from tui_transformer.session.session import LOSS, TEXT, Session, gradient_cost
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import cells, fit, visible

WORD_WIDTH, LIKELY_WIDTH, SHARE_WIDTH, AFTER_WIDTH = 12, 14, 10, 26
"""Cells of a token, of one that is likely in its place or after it, of its share, and of the text up to there."""

MOST_LIKELY = 12
"""Words a row, of which the first are shown that there is room for."""

TAIL, LONG_TAIL = 16, 40
"""Characters of the text that are shown up to a place, and where there is room for more."""

MOST_LINES = 3
"""Lines of a text."""

MOST_ROWS = 200
"""Places of a long text that have a row."""

SORTING = 20
"""Operations that sorting takes, per cell."""

BACKWARDS = "{step.next} goes back, step by step, to the embedding"

TEMPERATURES = (0.0, *(tenth / 10 for tenth in range(1, 11)), 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)


Keys = Callable[[str], str]
"""Writes the keys that are in use into a text that names their meanings, as `hint`."""
Ink = Literal["plain", "quiet", "strong"]


@dataclass(frozen=True)
class Lines:
    """A text in pieces, each with how it is drawn."""

    pieces: list[tuple[str, Ink]] = field(default_factory=list)

    def add(self, text: str, ink: Ink = "plain") -> Lines:
        """Go on with a piece."""
        self.pieces.append((text, ink))
        return self


Drawn = Callable[[int], Lines]
"""Words, drawn for so many columns."""


@dataclass(frozen=True)
class Guess:
    """A place: its token, or the text up to it where the model goes on from there; the most likely words, with shares.

    `before` says the same without the edits, where that is not the same to the last digit that is shown.
    """

    token: str
    likely: tuple[str, ...]
    before: tuple[str, ...] = ()


def ending(session: Session, report: Report, keys: Keys, temperature: float) -> Drawn:
    """Detokenize the IDs, and the most likely ID at every place where the model answers."""
    trace, model = session.trace, session.model
    if model.tokenizer is None:
        raise ValueError("this stop is only there where the model has words")
    tokenizer = target_tokenizer(model.tokenizer) if model.has_decoder else model.tokenizer
    first, ahead = answers_first(model.folder), predicts_next(trace.program)
    size = trace.program.shape(PROBABILITIES)[0]
    places = range(max(size - MOST_ROWS, 0), size) if ahead else range(1 if first else min(size, MOST_ROWS))
    written = session.decoder_encoding or session.encoding
    texts = [written.ids[max(place + 1 - WINDOW, 0) : place + 1] for place in places]

    def shown(likely: Sequence[tuple[Likely, ...]]) -> list[tuple[str, ...]]:
        return [_columns(model, row, text if ahead else None) for row, text in zip(likely, texts, strict=True)]

    likely = _likely(trace, places, temperature, report)
    now = shown(likely)
    then = shown(_likely(session.base, places, temperature, report)) if session.edits else now
    guesses = []
    for place, text, row, other in zip(places, texts, now, then, strict=True):
        if ahead:
            so_far = tokenizer.decode([*text])
            cut = place + 1 > WINDOW or len(so_far) > LONG_TAIL
            label = f"… {visible(so_far[-LONG_TAIL:].lstrip())}" if cut else visible(so_far)
        else:
            label = f"{model.label(written.tokens[place].text)} @{place}"
        guesses.append(Guess(label, row, other if other != row else ()))
    tokens = [row[0].token for row in likely if row]
    best_text = tokenizer.decode([token for token in tokens if token < tokenizer.vocabulary.size])
    change = keys("{cursor.wider} {cursor.narrower} change T").replace("-", "−")
    formula = (
        f"softmax(logits ÷ T), T = {temperature:g}{'' if temperature else ' (limit)'} · {change}, for this table alone"
    )
    return partial(
        _drawn_ending,
        sentence=tokenizer.decode(written.ids),
        most_likely="" if ahead else NO_NUMBER if any(map(_is_nan, likely)) else best_text,
        formula=formula + "\nbefore: without the edits" * bool(session.edits),
        guesses=guesses[::-1] if ahead else guesses,
        where="the first token, where this model answers" if first else "every place",
        hidden=0 if first and not ahead else size - len(places),
    )


def _drawn_ending(
    width: int, *, sentence: str, most_likely: str, formula: str, guesses: Sequence[Guess], where: str, hidden: int
) -> Lines:
    """The text, what is most likely, and a row for every place where the model answers, but of a long text for some."""
    text = Lines().add("The token IDs as text again\n", "quiet")
    text.add(f"{_folded(sentence, width)}\n\n", "strong")
    named = [guess.token for guess in guesses]
    if most_likely:
        text.add(f"The most likely word at {where}\n", "quiet")
        text.add(f"{_folded(most_likely, width)}\n\n", "strong")
    else:
        text.add("The most likely next token after every place, the last place first\n", "quiet")
        named = [_after(name, width) for name in named]
    text.add(f"{formula}\n", "quiet")
    first = min(max(map(cells, named), default=0), max(AFTER_WIDTH, width // 3)) + 1
    columns = max((width - first) // (LIKELY_WIDTH + SHARE_WIDTH), 1)
    for name, guess in zip(named, guesses, strict=True):
        text.add(fit(name, first), "strong")
        text.add(f"{''.join(guess.likely[:columns]).rstrip()}\n")
        if guess.before:
            text.add(f"{fit('  before', first)}{''.join(guess.before[:columns]).rstrip()}\n", "quiet")
    if hidden:
        text.add(f"{hidden:,} more places have no row here\n", "quiet")
    return text


def ending_cost(session: Session) -> int:
    """About how many operations `ending` takes."""
    rows, columns = session.trace.program.shape(PROBABILITIES)
    traces = (session.trace, session.base) if session.edits else (session.trace,)
    return sum(trace.pending([PROBABILITIES]) + SORTING * min(rows, MOST_ROWS) * columns for trace in traces)


def _likely(trace: Trace, places: range, temperature: float, report: Report) -> list[tuple[Likely, ...]]:
    trace.compute((PROBABILITIES,), before=lambda step: report(step.name))
    rows = []
    for place in places:
        report(f"position {place:,}")
        rows.append(likely_at(trace, place, MOST_LIKELY, temperature))
    return rows


def _columns(model: Model, likely: tuple[Likely, ...], text: Sequence[int] | None) -> tuple[str, ...]:
    """Tokens with their shares: as words, or as what follows a text."""
    known = model.target_vocabulary.size if model.target_vocabulary is not None else 0
    if _is_nan(likely):
        return (f" {NO_NUMBER}",)
    columns = []
    for each in likely:
        if text is None or each.token >= known:
            word = model.target_label(each.token)
        else:
            word = f"“{visible(token_text(model, text, each.token))}”"
        columns.append(f" {fit(word, LIKELY_WIDTH)}{percent(each.probability):>8} ")
    return tuple(columns)


def _is_nan(likely: tuple[Likely, ...]) -> bool:
    """Whether the logits are no numbers: then no word is likelier than another."""
    return bool(likely) and math.isnan(likely[0].probability)


def _after(text: str, width: int) -> str:
    """`after “… small girl”`: as much of the end of a text as there is room for."""
    room = LONG_TAIL if width // 3 >= LONG_TAIL else TAIL
    cut = cells(text) > room + 2
    return f"after “{'… ' * cut}{text[-room:].lstrip('… ') if cut else text}”"


def _folded(text: str, width: int) -> str:
    """A text over a few lines; where characters take two cells, lines are so much shorter."""
    shown = visible(text)
    room = max(width * len(shown) // max(cells(shown), 1), 1)
    return "\n".join(wrap(shown, room, max_lines=MOST_LINES, placeholder=" …"))


# The loss


def loss(session: Session, report: Report, keys: Keys, temperature: float) -> Drawn:
    """The loss, and what every position adds to it; no temperature has a part in it."""
    del temperature
    gradients = session.go_back(report)
    if session.scalar is None:
        text = _written_loss(session, gradients, keys)
        return lambda _: text
    # the metric that is differentiated instead of the loss, and its gradient by the logits
    start = gradients.start
    text = Lines().add(f"{visible(start.description)} " if start else "", "quiet")
    text.add(f"{gradients.loss:.6g}\n\n", "strong")
    text.add(f"its gradient by the logits: {start.formula}\n" if start else "")
    text.add("it takes the place of the loss: ∂loss is its gradient here\n")
    text.add(keys(f"\n{BACKWARDS} · {{measure}} differentiates something else"), "quiet")
    return lambda _: text


def _written_loss(session: Session, gradients: Gradients, keys: Keys) -> Lines:
    """The loss, and every position with the share of its target, from a softmax in float64."""
    targets, model = session.loss_targets, session.model
    rows, columns = session.trace.program.shape(LOGITS)
    window = range(min(rows, MOST_ROWS)), range(columns)
    logits = session.trace.window(session.trace.program.logits, window).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    text = Lines().add("loss ", "quiet").add(f"{gradients.loss:.6g}", "strong")
    of = f"{gradients.counted:,} of {len(targets):,} position{'s' * (len(targets) != 1)}"
    text.add(f"  = mean of −ln p(target) over {of}\n\n", "quiet")
    names = "".join(fit(name, WORD_WIDTH + 2) for name in ("token", "target"))
    text.add(f"{names}{'p(target)':>10}{'−ln p':>9}\n", "quiet")
    tokens = (session.decoder_encoding or session.encoding).tokens
    for token, target, row in zip(tokens, targets, shares, strict=False):
        text.add(fit(model.label(token.text), WORD_WIDTH) + "  ", "strong")
        if target == NOT_COUNTED:
            text.add("−1: not counted\n", "quiet")
            continue
        share = float(row[target])
        text.add(fit(model.target_label(target), WORD_WIDTH) + "  ")
        said = f"{percent(share):>10}{-np.log(share):9.3f}" if share else f"{'0 %':>10}{'∞':>9}"
        text.add(f"{said}\n")
    return text.add(keys(f"\n{BACKWARDS} · {{targets}} sets other targets"), "quiet")


@dataclass(frozen=True)
class Words:
    """A stop that is words: its title, what it costs and how it is made."""

    title: str
    cost: Callable[[Session], int]
    made: Callable[[Session, Report, Keys, float], Drawn]


WORDS = {TEXT: Words("Text", ending_cost, ending), LOSS: Words("Loss", gradient_cost, loss)}
