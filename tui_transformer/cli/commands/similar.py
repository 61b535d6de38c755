"""Show the words nearest to a word, or to a sum of words, by the cosine of their embeddings.

A sum is written "king - man + woman"; its own words are left out of the answer. --vectors shows those of GloVe or
word2vec for the words of --vocab.

Example: tui-transformer similar sailor --model question
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import Flags
from tui_transformer.cli.parameters import TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Flags):
    """The word or the sum, and how many words are shown."""

    words: Annotated[str, typer.Argument(metavar="WORDS", help='A word or its ID, or a sum as "king - man + woman".')]
    top: Annotated[int, typer.Option("--top", min=1, help="How many words.")] = 10
    format: TableFormat = "text"
