"""Targets: the token that is right at every position, which the loss compares the predictions with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model.model import Model
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.encoding import Tokenizer

Ids = tuple[int, ...]


def has_loss(program: Program) -> bool:
    """Whether there are predictions of tokens to compare with targets."""
    return bool(program.logits)


def predicts_next(program: Program) -> bool:
    """Whether a prediction is of the next token: the sequence that is predicted has a causal mask."""
    return any(isinstance(step.op, Mask) and step.op.causal for step in program.steps)


def default_targets(program: Program, ids: Sequence[int]) -> Ids:
    """The next token at every position of a causal model, the tokens themselves in any other.

    Nothing follows the last position of a causal model, so it is not counted.
    """
    return (*ids[1:], NOT_COUNTED) if predicts_next(program) else tuple(ids)


def own_answer(trace: Trace) -> Ids:
    """The token that the model finds most likely at its first position, which alone is counted."""
    positions, words = trace.program.shape(LOGITS)
    likeliest = int(trace.window(trace.program.logits, (range(1), range(words))).argmax())
    return (likeliest, *[NOT_COUNTED] * (positions - 1))


def written_targets(model: Model, targets: Sequence[int]) -> str:
    """Targets as a person writes them: words where they are read as the same ID again, else IDs."""
    words = [model.target_word(target) if target >= 0 else "" for target in targets]
    pairs = zip(words, targets, strict=True)
    return " ".join(word if word and target_of(model, word) == target else str(target) for word, target in pairs)


def read_targets(model: Model, text: str, positions: int) -> Ids:
    """Words, token IDs and −1 (not counted) between spaces or commas, one for every position.

    Raises:
        InputError: A word that is not one token, an ID outside the vocabulary, or not as many as there are positions.
    """
    pieces = text.split() if not re.fullmatch(r"[-−\d,\s]*", text) else text.replace(",", " ").split()
    targets = []
    for piece in pieces:
        target = target_of(model, piece)
        if target is None:
            raise InputError(f"{piece!r} is not one token of the vocabulary: write its ID, or -1 for none")
        if not NOT_COUNTED <= target < model.target_size:
            raise InputError(f"there is no token {target}: IDs go from 0 to {model.target_size - 1}, -1 for none")
        targets.append(target)
    if len(targets) != positions:
        said = f"{len(targets)} target{'s' * (len(targets) != 1)} for {positions} position{'s' * (positions != 1)}"
        raise InputError(f"{said}: write one for each, -1 for none")
    if all(target == NOT_COUNTED for target in targets):
        raise InputError("every target is -1: at least one has to be counted")
    return tuple(targets)


def target_of(model: Model, piece: str) -> int | None:
    """As `token_of`, of what the model writes: of a token whose logit there is."""
    return token_of(None if model.tokenizer is None else target_tokenizer(model.tokenizer), piece)


def token_of(tokenizer: Tokenizer | None, piece: str) -> int | None:
    """The ID of a number, of a word of the vocabulary, or of a text that is one token; None for anything else."""
    if re.fullmatch(r"[-−]?\d{1,18}", piece):
        return int(piece.replace("−", "-"))
    if tokenizer is None:
        return None
    if (known := tokenizer.vocabulary.ids.get(piece)) is not None:
        return known
    for text in (piece, f" {piece}"):  # byte pairs have a word inside a sentence with the space before it
        try:
            tokens = [token for token in tokenizer.encode(text).tokens if token.start < token.end]
        except InputError:
            return None
        if len(tokens) == 1 and not tokens[0].unknown:
            return tokens[0].id
    return None
