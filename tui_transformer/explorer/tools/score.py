"""The text with every token shaded by how much it surprises the model, and what each adds to the perplexity."""

from __future__ import annotations

import math
from collections.abc import Callable

from textual.content import Content

from tui_transformer.analysis.score import Score, TokenScore, score, text_targets
from tui_transformer.engine.number_format import in_percent, minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import SCORE
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.generation.text import token_texts
from tui_transformer.model.targets import predicts_next
from tui_transformer.records import dataclass
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible

MOST = 500
"""Tokens that have a line of their own."""

WORD = 16
STRONGEST = 10.0
"""Bits of surprise from which on a token is shaded most."""

SMOOTHING = 0.1
"""ε of the label smoothing that the cross-entropy is shown with too, as in the paper (Vaswani et al. 2017, §5.4)."""

TEMPERATURES = (0.1, 0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
"""Temperatures that the logits may be divided by."""

UNLIKELY = 0.1
"""Below this share a token is underlined too."""


def open_from(port: Port) -> None:
    """The score of the text."""
    session = port.session
    ask(port, session, 1.0, lambda first: port.open(ScoreScreen(port, session, first)))


@dataclass(frozen=True)
class Scored:
    """A text at a temperature, without label smoothing and with it."""

    temperature: float
    plain: Score
    smoothed: Score


def ask(port: Port, session: Session, temperature: float, show: Callable[[Scored], None]) -> None:
    """Score the text of a session at a temperature, and show that; says so where it has no score."""
    trace, program = session.trace, session.trace.program
    targets, cost = text_targets(trace, session.predicted), sum(map(program.flops, program.steps))

    def work(_: Task) -> Scored | InputError:
        try:
            plain = score(trace, targets, temperature=temperature)
            return Scored(temperature, plain, score(trace, targets, temperature=temperature, smoothing=SMOOTHING))
        except InputError as error:
            return error

    def done(answer: Scored | InputError) -> None:
        if isinstance(answer, InputError):
            port.say(str(answer))
        else:
            show(answer)

    ask_of_now(port, "score", work, done, cost)


class ScoreScreen(Dialog[None]):
    """The shaded text, the sums, and a line a token."""

    ACTIONS = SCORE

    def __init__(self, port: Port, session: Session, scored: Scored) -> None:
        super().__init__("How likely the text is")
        self.port, self.session, self.both = port, session, scored
        self._asked = scored.temperature  # the one that keys asked for last

    def action_warmer(self, steps: int) -> None:
        place = TEMPERATURES.index(self._asked) + steps

        def show(scored: Scored) -> None:
            self.both = scored
            self.show_text()

        if 0 <= place < len(TEMPERATURES):
            self._asked = TEMPERATURES[place]
            ask(self.port, self.session, self._asked, self.while_there(show))

    def text(self) -> Content:
        ids, ahead = self.session.predicted, predicts_next(self.session.trace.program)
        scored, count = self.both.plain, len(self.both.plain.tokens)
        known = {token.position + ahead: token for token in scored.tokens}
        parts = zip(token_texts(self.session.model, ids), map(known.get, range(len(ids))), strict=True)
        shaded = Content("").join(Content.styled(visible(text), _shade(token)) for text, token in parts)
        sees = "" if ahead else " · the model sees each token that it is scored on"
        sums = (
            f"ln p of the text {minus(f'{scored.log_probability:.4f}')} nats · {count:,} tokens{sees}",
            f"cross-entropy {scored.cross_entropy:.4f} nats, {scored.cross_entropy / math.log(2):.4f} bits a token",
            f"with label smoothing {SMOOTHING:g}: {self.both.smoothed.cross_entropy:.4f} nats",
            f"perplexity {scored.perplexity:.4g}: as lost as among so many equally likely tokens",
            f"temperature {self.both.temperature:g}: p = softmax(logits ÷ {self.both.temperature:g})",
            f"shaded: −log₂ p, up to {STRONGEST:g} bits; underlined: p below {in_percent(UNLIKELY, '.0%')}",
        )
        quiet = (Content.styled(line, "$foreground 80%") for line in sums)
        lines = [Content.styled(f"{fit('token', WORD)} {'p':>9} {'−ln p':>9} {'rank':>7}", "$foreground 65%")]
        for token in scored.tokens[:MOST]:
            word = fit(self.session.model.target_label(token.token), WORD)
            rank = f"{token.rank:,}" if token.rank else "–"
            lines.append(Content(f"{word} {token.probability:>9.4f} {-token.log_probability:>9.4f} {rank:>7}"))
        if count > MOST:
            lines.append(Content(f"and {count - MOST:,} more"))
        return Content("\n").join([shaded, Content(""), *quiet, Content(""), *lines])


def _shade(token: TokenScore | None) -> str:
    if token is None:
        return "$foreground 60%"
    bits = -token.log_probability / math.log(2)
    shade = round(70 * min(1.0, bits / STRONGEST))  # 70 too where the logits are not numbers
    ground = f"on $error {shade}%" if shade else ""
    return f"{'underline ' if token.probability < UNLIKELY else ''}$foreground {ground}".strip()
