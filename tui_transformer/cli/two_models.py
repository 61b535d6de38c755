"""The losses of one model beside another: the part of `diff` that two models have and two files have not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui_transformer.analysis.two_models import Loss
from tui_transformer.model import Model
from tui_transformer.report.numbers import aligned
from tui_transformer.report.text import finite

SHOWN = 10
"""Heads that a table shows, those that lose most."""


def told(loss: Loss, model: Model) -> Iterator[str]:
    """Layers, heads and answers in words and tables."""
    if loss.layers:
        yield "\nwhat leaves a layer: error ‖a − b‖ ÷ ‖a‖, and cosine of both\n"
        yield from aligned(
            [("layer", "error", "cosine"), *((e.name, _small(e.error), f"{e.cosine:.6f}") for e in loss.layers)]
        )
    if loss.heads:
        yield f"\nheads that lose most, of {len(loss.heads)}: error of the context, divergence of the weights in nats\n"
        rows = [(f"{e.attention} head {e.head}", _small(e.error), _small(e.divergence)) for e in loss.heads[:SHOWN]]
        yield from aligned([("head", "error", "divergence"), *rows])
    if loss.logits is not None:
        yield from _answers(loss, model)


def _answers(loss: Loss, model: Model) -> Iterator[str]:
    logits = loss.logits
    if logits is None:
        return
    position, most = logits.worst
    one, other = (model.target_label(token) for token in logits.likeliest)
    yield f"\nlogits: divergence {_small(logits.divergence)} nats, at most {_small(most)} at position {position}; "
    yield f"the same token is most likely at {logits.agreeing} of {logits.positions} positions; "
    yield f"after the last it is {one} in both\n\n" if one == other else f"after the last it is {one} and {other}\n\n"


def _small(value: float) -> str:
    return f"{value:.3g}"


def data(loss: Loss) -> dict[str, Any]:
    """The same for JSON; what is infinite is null."""
    answers = loss.logits and {
        "divergence": finite(loss.logits.divergence),
        "worst": {"position": loss.logits.worst[0], "divergence": finite(loss.logits.worst[1])},
        "agreeing": loss.logits.agreeing,
        "positions": loss.logits.positions,
        "likeliest": list(loss.logits.likeliest),
    }
    return {
        "layers": [{"name": e.name, "error": finite(e.error), "cosine": finite(e.cosine)} for e in loss.layers],
        "heads": [
            {"attention": e.attention, "head": e.head, "error": finite(e.error), "divergence": finite(e.divergence)}
            for e in loss.heads
        ],
        "logits": answers,
    }
