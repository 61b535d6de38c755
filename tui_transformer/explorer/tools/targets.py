"""The targets of the loss: one word, token ID or −1 for every position, checked while they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from textual.content import Content

from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.line_input import completes
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import Advice, PromptScreen
from tui_transformer.model.model import Model
from tui_transformer.model.targets import predicts_next, read_targets, written_targets
from tui_transformer.session.position import Position
from tui_transformer.session.session import LOSS, Session
from tui_transformer.text.display import visible

MOST_PAIRS = 24
MOST_WORDS = 12
"""Words of the vocabulary that are listed to choose from."""

TO = "\u00a0→\u00a0"
"""Between a token and its target, never at the end of a line."""
NEXT = "The next token at every position, unless you say otherwise."
SAME = "The tokens themselves, unless you say otherwise."
OWN = "The model's own answer, unless you say otherwise; any other gives larger gradients."
HOW = "Words or token IDs with a space between them; -1 is not counted."


def open_from(port: Port) -> None:
    """Set the targets, and walk backwards from their loss."""
    session = port.session

    def finish(text: str | None) -> None:
        if text is not None:
            targets = read_targets(session.model, text, len(session.loss_targets))
            port.change(session.with_targets(targets), Position(LOSS, port.position.place))

    program = session.base.program
    cost = sum(map(program.flops, program.steps)) if session.targets is None and session.answers_once else 0
    port.ask("targets", cost, lambda _: session.loss_targets, lambda _: port.open(targets_prompt(session), finish))


def targets_prompt(session: Session) -> PromptScreen:
    """The targets of a session in a line; under it what every position is to become, or what is wrong."""
    model, tokens = session.model, (session.decoder_encoding or session.encoding).tokens
    unless = OWN if session.answers_once else NEXT if predicts_next(session.base.program) else SAME
    return PromptScreen(
        "Targets of the loss",
        value=written_targets(model, session.loss_targets),
        hint=f"{HOW}\n{unless}",
        check=lambda typed: read_targets(model, typed, len(tokens)),
        advise=partial(_advice, model, [model.label(token.text) for token in tokens]),
    )


def _advice(model: Model, tokens: Sequence[str], typed: str) -> Advice:
    """The target of every position, or the mistake, and the words that the last typed one may become."""
    completions = _completions(model, typed)
    try:
        targets = read_targets(model, typed, len(tokens))
    except InputError as error:
        words = [completed.rpartition(" ")[2] for completed in completions]
        return Advice(Content(f"tab: {'   '.join(words)}" if words else ""), completions, str(error))
    pairs = zip(tokens[:MOST_PAIRS], targets, strict=False)
    lines = (f"{token}{TO}{'·' if to == NOT_COUNTED else model.target_label(to)}" for token, to in pairs)
    return Advice(Content("   ").join(map(Content, lines)), completions)


def _completions(model: Model, typed: str) -> list[str]:
    """The typed text with its last word completed from the vocabulary."""
    before, space, last = typed.rpartition(" ")
    words = model.target_vocabulary
    if words is None or not last or last.lstrip("-−").isdecimal():
        return []
    fitting = (word for word in words.words if completes(word, last) and word != last and visible(word) == word)
    return [f"{before}{space}{word}" for word in islice(fitting, MOST_WORDS)]
