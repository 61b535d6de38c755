"""What another sentence changes: which words, the answer before and after, and the heads that look elsewhere.

Tokens of both sentences are put beside one another: the same ones, and where others stand between these, one in place
of the other. How far a head looks elsewhere is the mean of ½ Σ |p − q|, the total variation distance of where a query
looks before and after, over the keys of both: one that is only in one sentence has no weight in the other. The queries
are those that both have, and the two where the answer is read: behind other words that may be another token.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby, zip_longest

import numpy as np

from tui_transformer.analysis.attentions import BLOCK, Attention, Report, attentions
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, minus
from tui_transformer.engine.program import LABEL, Step
from tui_transformer.records import dataclass
from tui_transformer.session.answer_summary import answer_position, answers, describe, percent
from tui_transformer.session.break_effect import AnswerChange, outcome, values_of
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import token_label, visible
from tui_transformer.text.encoding import shown
from tui_transformer.views.numbers import MINUS, short_number

Pair = tuple[int | None, int | None]
"""The places of a token before and after; None where it is not in that sentence."""

MOST_TO_MATCH = 512
"""Tokens between what both begin and end with, up to which the same ones are looked for among them."""

MOST_WEIGHTS = 100_000_000
"""Attention weights that are compared: about a second."""

LEAST_MOVE = 0.005
"""How far a head looks elsewhere at least that is named: it would be written as .00."""

COST = 6
"""Operations that it takes to compare a weight."""

MOST_LINES = 12
"""Lines of an answer that are kept."""


# The tokens


def aligned(before: Sequence[Hashable], after: Sequence[Hashable]) -> tuple[Pair, ...]:
    """The places of both beside one another: what is the same, what took the place of another, what came and went."""
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    same = range(1, shorter - first + 1)
    last = next((at - 1 for at in same if before[-at] != after[-at]), max(shorter - first, 0))
    was, now = range(first, len(before) - last), range(first, len(after) - last)
    middle: Iterable[Pair]
    if max(len(was), len(now)) > MOST_TO_MATCH:
        middle = zip_longest(range(len(was)), range(len(now)))
    else:
        matcher = SequenceMatcher(None, [before[at] for at in was], [after[at] for at in now], autojunk=False)
        codes = matcher.get_opcodes()
        middle = (pair for _, i, j, to, end in codes for pair in zip_longest(range(i, j), range(to, end)))
    return (
        *((at, at) for at in range(first)),
        *((None if i is None else first + i, None if j is None else first + j) for i, j in middle),
        *((len(before) - at, len(after) - at) for at in range(last, 0, -1)),
    )


def columns_of(before: Session, after: Session) -> Mapping[str, tuple[Pair, ...]]:
    """The tokens of both beside one another, for each sequence that both have."""
    was, now = before.sequences, after.sequences
    return {
        name: aligned([token.text for token in was[name].tokens], [token.text for token in now[name].tokens])
        for name in now
        if name in was
    }


def differs(before: Session, after: Session, sequence: str, pair: Pair) -> bool:
    """Whether a token came, went, or is another."""
    was, now = (
        None if place is None else session.sequences[sequence].tokens[place].text
        for session, place in zip((before, after), pair, strict=True)
    )
    return was is None or now is None or was != now


def words_said(before: Session, after: Session) -> str:
    """What became of the words: `map became treasure chest, ? went`."""
    said = []
    for name, pairs in columns_of(before, after).items():
        for changed, run in groupby(pairs, partial(differs, before, after, name)):
            if changed:
                sides = zip(*run, strict=True)
                both = zip((before, after), sides, strict=True)
                texts = ([word_at(each, name, place) for place in side] for each, side in both)
                was, now = (" ".join(filter(None, words)) for words in texts)
                said.append(f"{was} became {now}" if was and now else f"{was} went" if was else f"{now} came")
    return ", ".join(said)


def word_at(session: Session, sequence: str, place: int | None) -> str:
    """A token as it stands in a line, "" for none; an unknown one as it was written, with a question mark."""
    if place is None:
        return ""
    token = session.sequences[sequence].tokens[place]
    return shown(token) if token.unknown else token_label(session.labels.sequences[sequence][place])


# The answer


@dataclass(frozen=True)
class AnswerLine:
    """A line about the answer: what it is of, before and after; `share`: both are parts of 1, drawn as bars.

    `was` is NaN of what was not there. A cosine is that of a vector with itself before, 1, and with the one before now.
    """

    label: str
    was: float
    now: float
    share: bool = True
    cosine: bool = False

    @property
    def numbers(self) -> tuple[str, str]:
        """Both as they are written."""
        if not self.share:
            return short_number(self.was), short_number(self.now)
        if self.cosine:
            return "1", minus(f"{self.now:.3f}")
        return percent(self.was), percent(self.now)

    @property
    def moved(self) -> str:
        """The difference, in percentage points of a share: `+37.2`; "" where it would be written as 0."""
        if not self.share:
            return ""
        size = (self.now - self.was) * (1 if self.cosine else 100)
        text = f"{abs(size):.{3 if self.cosine else 1}f}"
        return "" if not float(text) else f"{'+' if size > 0 else MINUS}{text}"


@dataclass(frozen=True)
class HeadChange:
    """How far a head looks elsewhere, from 0 to 1, and its link that changes most: places among the columns.

    Attributes:
        step: Its attention.
        head: Its number.
        size: The mean total variation distance over the queries.
        query: The places of the link's query before and after.
        key: Those of its key.
        was: Its weight before.
        now: Its weight after.
    """

    step: Attention
    head: int
    size: float
    query: Pair
    key: Pair
    was: float
    now: float

    @property
    def name(self) -> str:
        """`L0 H2`."""
        return f"L{self.step.layer} H{self.head}"

    @property
    def described(self) -> str:
        """`head 2 of encoder.0.self_attention`."""
        return f"head {self.head} of {self.step.sublayer}"


@dataclass(frozen=True, eq=False)
class SentenceChange:
    """What another sentence changes.

    Attributes:
        before: The session as it was.
        after: The session on the other sentence.
        lines: About the answer, what there is most of, or what moved furthest, first.
        said: The answer before and after in a few words.
        heads: Every head, that which looks elsewhere most first; none where nothing is compared.
    """

    before: Session
    after: Session
    lines: tuple[AnswerLine, ...]
    said: str
    heads: tuple[HeadChange, ...]


def change_of(before: Session, after: Session, report: Report) -> SentenceChange:
    """What a sentence changes; `report` may raise to end it."""
    lines, said = _answer_change(before, after, report)
    said = describe(after, report) if before is after else said
    heads = () if weights_in(before, after) > MOST_WEIGHTS else tuple(_heads(before, after, report))
    return SentenceChange(before, after, lines, said, tuple(sorted(heads, key=lambda each: -each.size)))


def cost_of_change(before: Session, after: Session) -> int:
    """About how many operations that takes; of many, that it is many."""
    names = [*(each.name for each in attentions(after.trace.program)), after.trace.program.steps[-1].name]
    return sum(each.trace.pending(names, AT_ONCE) for each in (before, after)) + COST * weights_in(before, after)


def weights_in(before: Session, after: Session) -> int:
    """Attention weights of both."""
    return sum(
        each.heads * each.queries.size * each.keys.size
        for session in {before, after}
        for each in attentions(session.trace.program)
    )


def _answer_change(before: Session, after: Session, report: Report) -> tuple[tuple[AnswerLine, ...], str]:
    last = after.trace.program.steps[-1]
    if answers(after) or (last.axes[-1].name == LABEL and last.name.endswith("probabilities")):
        was, now = (outcome(each, each.trace, report) for each in (before, after))
        change = AnswerChange(was, now)
        best = [] if was.best < 0 or now.best < 0 else change.likeliest[:MOST_LINES]
        lines = tuple(AnswerLine(now.guess(at).name, was.guess(at).share, now.guess(at).share) for at in best)
        return lines, change.said if change.changes else f"the answer stays {now}"
    values = [values_of(each.trace, last.name, report) for each in (before, after)]
    if last.axes[-1].name == LABEL and len(last.axes) == 1:
        words = last.axes[-1].words
        names = [visible(words[at]) if words else f"label {at}" for at in range(last.shape[-1])]
        numbers = zip(names, *(each.ravel().tolist() for each in values), strict=True)
        lines = tuple(AnswerLine(name, was, now, share=False) for name, was, now in numbers)
        return lines[:MOST_LINES], ", ".join(f"{each.label} {' → '.join(each.numbers)}" for each in lines[:2])
    return _vectors_change(before, after, last, values)


def _vectors_change(
    before: Session, after: Session, last: Step, values: Sequence[Host]
) -> tuple[tuple[AnswerLine, ...], str]:
    """Cosines of what comes out: of the vector of the sentence, or of each token's with the one in its place before."""
    was, now = (each.reshape(-1, each.shape[-1]) for each in values)
    if len(last.axes) == 1:
        size = float(np.linalg.norm(now - was) / (np.linalg.norm(was) or 1.0))
        line = AnswerLine("cosine", 1.0, cosine(was[0], now[0]), cosine=True)
        return (line,), f"the vector moves by {in_percent(size)}, cosine {line.numbers[1]}"
    sequence = last.axes[0].sequence
    labels = after.labels.of(last.axes[0])
    pairs = columns_of(before, after).get(sequence, ())
    both = [(i, j) for i, j in pairs if i is not None and j is not None and i < len(was) and j < len(now)]
    cosines = sorted((cosine(was[i], now[j]), j) for i, j in both)
    lines = tuple(AnswerLine(labels(j), 1.0, each, cosine=True) for each, j in cosines[:MOST_LINES])
    mean = sum(each for each, _ in cosines) / max(len(cosines), 1)
    return lines, f"the vectors of {len(cosines)} tokens, mean cosine with before {minus(f'{mean:.3f}')}"


def cosine(first: Host, second: Host) -> float:
    """The cosine of two vectors, 0 where one is 0."""
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else 0.0


# The heads


def _heads(before: Session, after: Session, report: Report) -> Iterator[HeadChange]:
    columns, known = columns_of(before, after), before.trace.program.by_name
    program = after.trace.program
    for step in attentions(program):
        queries, keys = (columns.get(axis.sequence, ()) for axis in (step.queries, step.keys))
        pairs = [pair for pair in queries if None not in pair]
        if answers(after) and program.axes(program.logits)[-2].sequence == step.queries.sequence:
            pairs.append((answer_position(before), answer_position(after)))  # where the answer is read
        both = [*dict.fromkeys(pairs)]
        if step.name in known and both and keys:
            report(step.name)
            yield from _of_layer(before, after, step, both, keys, report)


def _of_layer(
    before: Session, after: Session, step: Attention, queries: Sequence[Pair], keys: Sequence[Pair], report: Report
) -> Iterator[HeadChange]:
    sizes, largest = np.zeros(step.heads), [(-1.0, (0, 0), 0.0, 0.0)] * step.heads
    height = max(1, BLOCK // (step.heads * len(keys)))
    for start in range(0, len(queries), height):
        report(f"{step.name} · query {start:,} of {len(queries):,}")
        part = queries[start : start + height]
        was, now = (_beside(each, step.name, part, keys, side) for side, each in enumerate((before, after)))
        apart = np.abs(now - was)
        sizes += apart.sum(axis=(1, 2)) / 2
        for head in range(step.heads):
            row, column = (int(at) for at in np.unravel_index(int(apart[head].argmax()), apart[head].shape))
            if apart[head, row, column] > largest[head][0]:
                weights = float(was[head, row, column]), float(now[head, row, column])
                largest[head] = float(apart[head, row, column]), (start + row, column), *weights
    for head, (_, (row, column), one, other) in enumerate(largest):
        yield HeadChange(step, head, float(sizes[head]) / len(queries), queries[row], keys[column], one, other)


def _beside(session: Session, name: str, queries: Sequence[Pair], keys: Sequence[Pair], side: int) -> Host:
    """Weights of all heads, heads × queries × keys as they stand beside one another; 0 of a key that is not there."""
    heads, _, size = session.trace.program.shape(name)
    rows = [each for pair in queries if (each := pair[side]) is not None]
    region = range(heads), range(min(rows), max(rows) + 1), range(size)
    weights = np.nan_to_num(session.trace.window(name, region).astype(np.float64))
    padded = np.concatenate([weights, np.zeros((heads, weights.shape[1], 1))], axis=2)
    places = [size if (place := pair[side]) is None else place for pair in keys]
    beside: Host = padded[:, np.array(rows) - min(rows)][:, :, places]
    return beside
