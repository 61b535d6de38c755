"""Score a text: log-probability, cross-entropy and perplexity of every token, and of all.

A model that reads forwards predicts each token from those before it; the first is predicted by none, unless --bracket
puts the beginning in front. An encoder-decoder is scored on --decoder-text. Any other model sees the token itself.
Without --model `story` is scored. Cross-entropy is in nats; perplexity is e to its mean, without label smoothing.

Example: tui-transformer score --text "Once there was a small girl" --format csv
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from tui_transformer.cli.options import Edited, TableFormat, Targets


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """The text that is scored, and how."""

    usual: ClassVar[str] = "story"

    temperature: Annotated[float, typer.Option("--temperature", help="Logits are divided by it.")] = 1.0
    label_smoothing: Annotated[
        float, typer.Option("--label-smoothing", help="Share of a target spread over all words, in the cross-entropy.")
    ] = 0.0
    targets: Targets = None
    format: TableFormat = "text"
