"""The targets of the loss: one word, token ID or −1 for every position, checked while they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from textual.content import Content

from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import PROMPT
from tui_transformer.explorer.shell.dialog import plain
from tui_transformer.explorer.shell.keys import Action
from tui_transformer.explorer.shell.line_input import LineInput, completes
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import LOSS, Session
from tui_transformer.model.targets import Ids, predicts_next, read_targets, written_targets
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
    if session.breaks:
        port.say(port.hint("something is broken on purpose: {breaks} mends it, then there are gradients"))
        return
    if not session.has_loss:
        port.say("this model has no output.logits: there is no loss, and no gradients")
        return

    def finish(text: str | None) -> None:
        if text is not None:
            targets = read_targets(session.model, text, len(session.loss_targets))
            port.change(session.with_targets(targets), Position(LOSS, port.position.place))

    def ask(_: object) -> None:
        port.open(TargetsScreen(session), finish)

    program = session.base.program
    cost = sum(map(program.flops, program.steps)) if session.targets is None and session.answers_once else 0
    port.ask("targets", cost, lambda _: session.loss_targets, ask)


class TargetsScreen(PromptScreen):
    """The targets in a line; under it what every position is to become, or what is wrong."""

    def __init__(self, session: Session) -> None:
        """Begin with the targets of a session."""
        tokens = (session.decoder_encoding or session.encoding).tokens
        self._model = session.model
        self._tokens = tuple(session.model.label(token.text) for token in tokens)
        super().__init__(
            "Targets of the loss",
            value=written_targets(session.model, session.loss_targets),
            hint=f"{HOW}\n{_default(session)}",
            check=self._targets,
        )

    def _targets(self, text: str) -> Ids:
        return read_targets(self._model, text, len(self._tokens))

    def actions(self) -> Sequence[Action]:
        """Words are completed from the vocabulary."""
        return [action for action in PROMPT if action.short != "lately"]

    def _completions(self, typed: str) -> list[str]:
        """The typed text with its last word completed from the vocabulary."""
        before, space, last = typed.rpartition(" ")
        words = self._model.target_vocabulary
        if words is None or not last or last.lstrip("-−").isdecimal():
            return []
        fitting = (word for word in words.words if completes(word, last) and word != last and visible(word) == word)
        return [f"{before}{space}{word}" for word in islice(fitting, MOST_WORDS)]

    def _suggest(self, typed: str) -> None:
        """Show the target of every position, or the mistake, and the words that the last typed one may become."""
        line = self.query_one(LineInput)
        line.suggestions = self._completions(typed)
        try:
            targets = self._targets(typed)
        except InputError as error:
            self._say("problem", plain(str(error)))
            words = [completed.rpartition(" ")[2] for completed in line.suggestions]
            self._say("suggestions", Content(f"tab: {'   '.join(words)}" if words else ""))
            return
        word = self._model.target_label
        pairs = zip(self._tokens[:MOST_PAIRS], targets, strict=False)
        lines = [f"{token}{TO}{'·' if to == NOT_COUNTED else word(to)}" for token, to in pairs]
        self._say("suggestions", Content("   ").join(map(Content, lines)))


def _default(session: Session) -> str:
    """The usual targets."""
    if session.answers_once:
        return OWN
    return NEXT if predicts_next(session.base.program) else SAME
