"""Stops that are words: the token IDs back as text with what is most likely, and the loss with its targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import ClassVar

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from tui_transformer.analysis.answer import Likely, likely_at
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED, Gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.actions.main import TEMPERATURE
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.state.answer import percent
from tui_transformer.explorer.state.session import LOSS, PROBABILITIES, TEXT, Session
from tui_transformer.explorer.tools.generate.wording import WINDOW, token_text
from tui_transformer.learning.answering import answers_first
from tui_transformer.model import Model
from tui_transformer.model.targets import predicts_next
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.text.encoding import Encoding

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

SCROLL_BAR = 1
"""Columns that are left to it whether it is there or not."""

SORTING = 20
"""Operations that sorting takes, per cell."""

MOST_LIKELY_WORDS = "The most likely word at every place"
AT_THE_FIRST = "The most likely word at the first token, where this model answers"
NEXT_WORDS = "The most likely next token after every place, the last place first"
BACKWARDS = "{step.next} goes back, step by step, to the embedding"
EDITED = "\nbefore: without the edits"

TEMPERATURES = (0.0, *(tenth / 10 for tenth in range(1, 11)), 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)


@dataclass(frozen=True)
class Guess:
    """A place: its token, or the text up to it where the model goes on from there; the most likely words, with shares.

    `before` says the same without the edits, where that is not the same to the last digit that is shown.
    """

    token: str
    likely: tuple[str, ...]
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """The contents of the last stop: the text, what is most likely, and a row for every place where the model answers.

    `first` says that the model was trained to answer at its first token alone, and only that is in the lists;
    `left_out` says of how many places of a long text there is no row.
    """

    sentence: str
    most_likely: str
    guesses: tuple[Guess, ...]
    first: bool = False
    left_out: int = 0


Report = Callable[[str], None]
Keys = Callable[[str], str]
"""Writes the keys that are in use into a text that names their meanings, as `hint`."""
Drawn = Callable[[int], Text]
"""Words, drawn for so many columns."""


def ending(session: Session, report: Report, temperature: float = 1.0) -> Ending:
    """Detokenize the IDs, and the most likely ID at every place where the model answers."""
    trace = session.trace
    if session.model.tokenizer is None:
        raise ValueError("this stop is only there where the model has words")
    tokenizer = target_tokenizer(session.model.tokenizer) if session.model.has_decoder else session.model.tokenizer
    first, ahead = answers_first(session.model.folder), predicts_next(trace.program)
    size = trace.program.shape(PROBABILITIES)[0]
    places = range(max(size - MOST_ROWS, 0), size) if ahead else range(1 if first else min(size, MOST_ROWS))
    likely = _likely(trace, places, temperature, report)
    before = _likely(session.base, places, temperature, report) if session.edits else likely
    written = session.decoder_encoding or session.encoding
    ids, how = written.ids, _after if ahead else _word
    named = [partial(how, session.model, ids[max(place + 1 - WINDOW, 0) : place + 1]) for place in places]
    labels = _texts_so_far(tokenizer.decode, ids, places) if ahead else _tokens(session.model, written, places)
    now = _shown(likely, named)
    then = now if before is likely else _shown(before, named)
    guesses = tuple(
        Guess(label, row, other if other != row else ()) for label, row, other in zip(labels, now, then, strict=True)
    )
    if ahead:
        guesses = guesses[::-1]
    tokens = (row[0].token for row in likely if row)
    best_text = tokenizer.decode([token for token in tokens if token < tokenizer.vocabulary.size])
    left_out = 0 if first and not ahead else size - len(places)
    return Ending(tokenizer.decode(ids), "" if ahead else best_text, guesses, first, left_out)


def _likely(trace: Trace, places: range, temperature: float, report: Report) -> list[tuple[Likely, ...]]:
    """The most likely tokens at some positions."""
    trace.compute((PROBABILITIES,), before=lambda step: report(step.name))
    rows = []
    for place in places:
        report(f"position {place:,}")
        rows.append(likely_at(trace, place, MOST_LIKELY, temperature))
    return rows


def _texts_so_far(decode: Callable[[list[int]], str], ids: Sequence[int], places: range) -> list[str]:
    """`… there was a small girl` for every place."""
    texts = []
    for place in places:
        text = decode([*ids[max(place + 1 - WINDOW, 0) : place + 1]])
        cut = place + 1 > WINDOW or len(text) > LONG_TAIL
        texts.append(f"{'… ' if cut else ''}{visible(text[-LONG_TAIL:].lstrip() if cut else text)}")
    return texts


def _tokens(model: Model, written: Encoding, places: range) -> list[str]:
    """`where @0` for every place."""
    return [f"{model.label(written.tokens[place].text)} @{place}" for place in places]


def _after(model: Model, before: Sequence[int], token: int) -> str:
    """Text that a token adds, in quotes with the space that it begins with."""
    if token >= _size(model):
        return model.target_label(token)
    return f"“{visible(token_text(model, before, token))}”"


def _size(model: Model) -> int:
    return model.target_vocabulary.size if model.target_vocabulary is not None else 0


def _word(model: Model, before: Sequence[int], token: int) -> str:  # noqa: ARG001 - named as the other
    return model.target_label(token)


def _shown(likely: Sequence[tuple[Likely, ...]], named: Sequence[Callable[[int], str]]) -> list[tuple[str, ...]]:
    """Words and probabilities in columns, a row a position."""
    rows = zip(likely, named, strict=True)
    return [tuple(_column(name(each.token), each.probability) for each in row) for row, name in rows]


def _column(word: str, share: float) -> str:
    return f" {fit(word, LIKELY_WIDTH)}{percent(share):>8} "


def ending_cost(session: Session) -> int:
    """About how many operations `ending` takes."""
    rows, columns = session.trace.program.shape(PROBABILITIES)
    traces = (session.trace, session.base) if session.edits else (session.trace,)
    return sum(trace.pending([PROBABILITIES]) + SORTING * min(rows, MOST_ROWS) * columns for trace in traces)


def written_ending(session: Session, report: Report, keys: Keys, temperature: float) -> Drawn:
    """Detokenized text and guesses."""
    end = ending(session, report, temperature)
    formula = _formula(temperature, keys) + EDITED * bool(session.edits)
    return lambda width: _draw_ending(end, formula, width)


def _draw_ending(end: Ending, formula: str, width: int) -> Text:
    quiet, strong = Style(dim=True), Style(bold=True)
    text = Text().append("The token IDs as text again\n", quiet).append(f"{_folded(end.sentence, width)}\n\n", strong)
    if end.most_likely:
        text.append(f"{AT_THE_FIRST if end.first else MOST_LIKELY_WORDS}\n", quiet)
        text.append(f"{_folded(end.most_likely, width)}\n\n", strong)
    else:
        text.append(f"{NEXT_WORDS}\n", quiet)
    text.append(f"{formula}\n", quiet)
    after = not end.most_likely
    named = [_after_text(guess.token, width) if after else guess.token for guess in end.guesses]
    first = min(max(map(cells, named), default=0), max(AFTER_WIDTH, width // 3)) + 1
    columns = max((width - first) // (LIKELY_WIDTH + SHARE_WIDTH), 1)
    for name, guess in zip(named, end.guesses, strict=True):
        text.append(fit(name, first), strong)
        text.append(f"{''.join(guess.likely[:columns]).rstrip()}\n", Style())
        if guess.before:
            text.append(f"{fit('  before', first)}{''.join(guess.before[:columns]).rstrip()}\n", quiet)
    if end.left_out:
        text.append(f"{end.left_out:,} more places have no row here\n", quiet)
    return text


def _after_text(text: str, width: int) -> str:
    """`after “… small girl”`: as much of the end of a text as there is room for."""
    room = LONG_TAIL if width // 3 >= LONG_TAIL else TAIL
    cut = cells(text) > room + 2
    return f"after “{'… ' * cut}{text[-room:].lstrip('… ') if cut else text}”"


def _folded(text: str, width: int) -> str:
    """A text over a few lines; where characters take two cells, lines are so much shorter."""
    shown = visible(text)
    room = max(width * len(shown) // max(cells(shown), 1), 1)
    return "\n".join(wrap(shown, room, max_lines=MOST_LINES, placeholder=" …"))


def _formula(temperature: float, keys: Keys) -> str:
    """How the probabilities are made, and how to change the temperature."""
    limit = " (limit)" if not temperature else ""
    change = keys("{cursor.wider} {cursor.narrower} change T").replace("-", "−")
    return f"softmax(logits ÷ T), T = {temperature:g}{limit} · {change}, for this table alone"


# The loss


@dataclass(frozen=True)
class Miss:
    """A position: its token, its target and how likely the model finds it; None where it is not counted."""

    token: str
    target: str
    share: float | None


def misses(session: Session) -> tuple[Miss, ...]:
    """Every position with the share of its target, from a softmax in float64."""
    targets, model = session.loss_targets, session.model
    rows, columns = session.trace.program.shape(LOGITS)
    shown = min(rows, MOST_ROWS)
    logits = session.trace.window(session.trace.program.logits, (range(shown), range(columns))).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    tokens = [model.label(token.text) for token in (session.decoder_encoding or session.encoding).tokens]
    return tuple(
        Miss(token, "", None) if target == NOT_COUNTED else Miss(token, model.target_label(target), float(row[target]))
        for token, target, row in zip(tokens, targets, shares, strict=False)
    )


def written_loss(session: Session, report: Report, keys: Keys, temperature: float) -> Drawn:
    """The loss, and what every position adds to it; no temperature has a part in it."""
    del temperature
    if session.scalar is None:
        text = _written_loss(session, report, keys)
    else:
        text = _written_metric(session.go_back(report), keys)
    return lambda _: text


def _written_loss(session: Session, report: Report, keys: Keys) -> Text:
    loss, quiet, strong = session.go_back(report).loss, Style(dim=True), Style(bold=True)
    counted = sum(target != NOT_COUNTED for target in session.loss_targets)
    text = Text().append("loss ", quiet).append(f"{loss:.6g}", strong)
    text.append(f"  = mean of −ln p(target) over {counted:,} of {len(session.loss_targets):,} positions\n\n", quiet)
    names = "".join(fit(name, WORD_WIDTH + 2) for name in ("token", "target"))
    text.append(f"{names}{'p(target)':>10}{'−ln p':>9}\n", quiet)
    for miss in misses(session):
        text.append(fit(miss.token, WORD_WIDTH) + "  ", strong)
        if miss.share is None:
            text.append("−1: not counted\n", quiet)
            continue
        text.append(fit(miss.target, WORD_WIDTH) + "  ", Style())
        text.append(
            f"{percent(miss.share):>10}{-np.log(miss.share):9.3f}\n" if miss.share else f"{'0 %':>10}{'∞':>9}\n",
            Style(),
        )
    return text.append(keys(f"\n{BACKWARDS} · {{targets}} sets other targets"), quiet)


def _written_metric(gradients: Gradients, keys: Keys) -> Text:
    """The metric that is differentiated instead of the loss, and its gradient by the logits."""
    quiet, start = Style(dim=True), gradients.start
    text = Text().append(f"{visible(start.said)} " if start else "", quiet)
    text.append(f"{gradients.loss:.6g}\n\n", Style(bold=True))
    text.append(f"its gradient by the logits: {start.formula}\n" if start else "", Style())
    text.append("it takes the place of the loss: ∂loss is its gradient here\n", Style())
    return text.append(keys(f"\n{BACKWARDS} · {{measure}} differentiates something else"), quiet)


def loss_cost(session: Session) -> int:
    """About how many operations the loss and its gradients take."""
    program = session.trace.program
    return 0 if session.went_back else 3 * sum(map(program.flops, program.steps))


@dataclass(frozen=True)
class Words:
    """A stop that is words: its title, what it costs and how it is made."""

    title: str
    cost: Callable[[Session], int]
    made: Callable[[Session, Report, Keys, float], Drawn]


WORDS = {TEXT: Words("Text", ending_cost, written_ending), LOSS: Words("Loss", loss_cost, written_loss)}


class TextPane(VerticalScroll, can_focus=True):
    """A stop that is words; those that there is no room for are scrolled to."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TEMPERATURE)
    DEFAULT_CSS = """
    TextPane {
        padding: 0 1;
        scrollbar-size-vertical: 1;
        Static { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__(id=id)
        self._drawn: Drawn = lambda _: Text()

    def compose(self) -> ComposeResult:
        """The words."""
        yield Static(id="words", markup=False)

    def show(self, drawn: Drawn) -> None:
        """Show words in the width that there is."""
        self._drawn = drawn
        self._draw()

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw(self) -> None:
        width = self.content_size.width - SCROLL_BAR * (not self.show_vertical_scrollbar)
        for words in self.query_children("#words").results(Static):
            words.update(self._drawn(width))

    class Warmed(Message):
        """The user wants another temperature: so many steps up, or down."""

        def __init__(self, steps: int) -> None:
            super().__init__()
            self.steps = steps

    def action_warmer(self, steps: int) -> None:
        """Ask for the next or previous temperature."""
        self.post_message(self.Warmed(steps))
