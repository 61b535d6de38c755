"""Show the words nearest to a word or a sum of words; of two or more sentences how alike they are, and by which tokens.

A sum is written "king - man + woman"; its own words are left out of the answer. --vectors shows those of GloVe or
word2vec for the words of --vocab. Nearness is the cosine: of words, of their embeddings; of sentences, of the vectors
that a folder of sentence-transformers makes, without --model the first one on this computer.

Example: tui-transformer similar "a dog sleeps" "the cat is asleep" "stocks fell"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import Flags, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Flags):
    """The word or the sum, or the sentences, and how much is shown."""

    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS|SENTENCE…",
            help='A word or its ID, or a sum as "king - man + woman"; or two and more sentences.',
        ),
    ]
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, help="How many words; of two sentences, pairs of tokens. [default: 10, 5]"),
    ] = None
    format: TableFormat = "text"
