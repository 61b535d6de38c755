"""What a model says: `answer`, the most likely tokens at every position, and `score`, how likely a text is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from tui_transformer.cli.options import Edited, TableFormat, Targets, parse_targets
from tui_transformer.cli.output import Row, Table, emit_json, jsonable
from tui_transformer.cli.session import open_session
from tui_transformer.cli.typer_layer import option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.session.session import Session

LOGITS = "output.logits"


@dataclass(frozen=True, kw_only=True)
class Answer(Edited):
    """Show the most likely tokens at every position: words, logits, and probabilities at a temperature.

    Example: tui-transformer answer --text "who hid the map ?"
    """

    top: int = option(5, "How many tokens of each position.", min=1)
    temperature: float = option(1.0, "Logits are divided by it.")
    position: str | None = option(
        None, "Only there; by default wherever the model was trained to answer.", metavar="N|last|all"
    )
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.cli.metrics import has_answers, positions_of
        from tui_transformer.learning.recipes import answers_first

        session = open_session(self)
        if _classifies(session):
            columns = ("position", "of", "rank", "id", "label", "logit", "probability")
            Table(columns, list(self._labels(session)), 4).emit(self.format)
            return
        if not has_answers(session.trace):
            raise InputError(f"{session.model.name} has no output head: it has no answer in words")
        first = answers_first(session.model.folder)
        positions = positions_of(session, self.position or ("0" if first else "all"))
        rows = list(self._words(session, positions))
        note = f"probability = softmax({LOGITS} ÷ {self.temperature:g})"
        if self.temperature == 0:
            note = "probability at temperature 0: all of it is the largest logit's"
        note += "; this model was trained to answer at the first token" * first
        columns = ("position", "of", "rank", "id", "word", "logit", "probability")
        Table(columns, rows, 4, note).emit(self.format)

    def _labels(self, session: Session) -> Iterator[Row]:
        """The likeliest labels of the sentence, or of every token; without shares where the logits are no scores."""
        from tui_transformer.cli.metrics import positions_of
        from tui_transformer.engine.program import PROBABILITIES
        from tui_transformer.generation.sampling import leading

        trace = session.trace
        *tokens, axis = trace.program.axes(LOGITS)
        if self.temperature != 1:
            raise UsageError("--temperature is of words: a label has the probability that the model gives it")
        if self.position and not tokens:
            raise UsageError("the labels are of the whole sentence: leave --position out")
        logits = trace[LOGITS].reshape(-1, axis.size)
        shares = trace[PROBABILITIES].reshape(-1, axis.size) if PROBABILITIES in trace.program.by_name else None
        label, word = session.labels.of(axis), session.labels.of(tokens[0]) if tokens else None
        for position in positions_of(session, self.position or "all") if tokens else (0,):
            row = logits[position]
            for rank, number in enumerate(leading(row, self.top).tolist(), 1):
                of = ("", "") if word is None else (position, word(position))
                share = None if shares is None else float(shares[position, number])
                place = None if math.isnan(row[number] if share is None else share) else rank
                yield *of, place, number, label(number), float(row[number]), share

    def _words(self, session: Session, positions: range) -> Iterator[Row]:
        from tui_transformer.analysis.score import likely_at

        label = session.labels.of(session.trace.program.axes(LOGITS)[0])
        for position in positions:
            likeliest = likely_at(session.trace, position, self.top, self.temperature)
            for rank, each in enumerate(likeliest, 1):
                word = session.labels.word(each.token)
                place = None if math.isnan(each.probability) else rank
                yield position, label(position), place, each.token, word, each.logit, each.probability


def _classifies(session: Session) -> bool:
    from tui_transformer.engine.program import LABEL

    logits = session.trace.program.by_name.get(LOGITS)
    return logits is not None and logits.axes[-1].name == LABEL


COLUMNS = ("position", "of", "id", "word", "rank", "probability", "log_probability", "cross_entropy", "perplexity")


@dataclass(frozen=True, kw_only=True)
class Score(Edited):
    """Score a text: log-probability, cross-entropy and perplexity of every token, and of all.

    A model that reads forwards predicts each token from those before it; the first is predicted by none, unless
    --bracket puts the beginning in front. An encoder-decoder is scored on --decoder-text. Any other model sees the
    token itself. Without --model `story` is scored. Cross-entropy is in nats; perplexity is e to its mean, without
    label smoothing.

    Example: tui-transformer score --text "Once there was a small girl" --format csv
    """

    usual: ClassVar[str] = "story"

    temperature: float = option(1.0, "Logits are divided by it.")
    label_smoothing: float = option(0.0, "Share of a target spread over all words, in the cross-entropy.")
    targets: Targets = None
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.score import score
        from tui_transformer.model.targets import predicts_next

        session = open_session(self)
        targets = self._targets(session)
        scored = score(session.trace, targets, temperature=self.temperature, smoothing=self.label_smoothing)
        label, rows = session.labels.of(session.trace.program.axes(LOGITS)[0]), list[Row]()
        for each in scored.tokens:
            own, word = each.log_probability, session.labels.word(each.token)
            perplexity = math.inf if own <= -math.log(1e308) else math.exp(-own)
            shown = each.rank or None, each.probability, own, each.cross_entropy, perplexity
            rows.append((each.position, label(each.position), each.token, word, *shown))
        total = scored.log_probability
        if self.format != "json":
            rows.append(("all", "", "", "", "", math.exp(total), total, scored.cross_entropy, scored.perplexity))
            ahead = predicts_next(session.trace.program)
            how = "each token from those before it" if ahead else "each token where it stands, which the model sees"
            smoothed = f" · label smoothing {self.label_smoothing:g}" if self.label_smoothing else ""
            note = f"{how} · nats · softmax({LOGITS} ÷ {self.temperature:g}){smoothed}"
            Table(COLUMNS, rows, 4, note).emit(self.format)
            return
        data = {
            "model": session.model.name,
            "temperature": self.temperature,
            "label_smoothing": self.label_smoothing,
            "tokens": [jsonable(dict(zip(COLUMNS, row, strict=True))) for row in rows],
            "counted": len(scored.tokens),
            "log_probability": total,
            "probability": math.exp(total),
            "cross_entropy": scored.cross_entropy,
            "perplexity": scored.perplexity,
        }
        emit_json(jsonable(data))

    def _targets(self, session: Session) -> Sequence[int]:
        """Those that were given, else the tokens themselves; none for padding."""
        from tui_transformer.analysis.score import text_targets
        from tui_transformer.engine.gradient import NOT_COUNTED

        program = session.trace.program
        if LOGITS not in program.by_name or _classifies(session):
            raise InputError(f"{session.model.name} gives words no probability: it has no {LOGITS} of words")
        positions, words = program.shape(LOGITS)
        if self.targets is None:
            return text_targets(session.trace, session.predicted)
        targets = parse_targets(self.targets, positions)
        for target in targets:
            if not NOT_COUNTED <= target < words:
                raise InputError(f"--targets: there is no token {target}: IDs go from 0 to {words - 1}, -1 for none")
        if all(target == NOT_COUNTED for target in targets):
            raise InputError("--targets: every target is -1: at least one has to be counted")
        return targets
