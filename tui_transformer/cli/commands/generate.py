"""Write a text on, token by token; --text is the prompt, or what an encoder reads.

Where nothing is said, tokens are taken as the model's generation_config.json says, else the most likely one.
A newline is added to a text that does not end with one. Without --model `story` writes; with a size or --vocab, a
decoder of random weights.

Example: tui-transformer generate --text "Once there was" --temperature 0.8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Edited
from tui_transformer.cli.terminal import choose_threads
from tui_transformer.cli.typer_layer import SEVERAL

prepare = choose_threads


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """How a text is written on."""

    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", help="At most so many tokens.")] = 40
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the most likely token.")] = False
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Logits are divided by it; 0 is --greedy.")
    ] = None
    top_k: Annotated[int | None, typer.Option("--top-k", help="Only so many of the most likely tokens.")] = None
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Only the most likely tokens that make up this share.")
    ] = None
    sample_seed: Annotated[
        int | None, typer.Option("--sample-seed", help="Seed of the draws; by default that of --seed, else 0.")
    ] = None
    stop_ids: Annotated[
        str | None,
        typer.Option(
            "--stop-ids",
            metavar="2,13",
            help="Token IDs that end the text, instead of the model's; may be given again.",
        ),
        SEVERAL,
    ] = None
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep keys and values, or compute all again.")] = (
        True
    )
    with_prompt: Annotated[bool, typer.Option("--with-prompt", help="Write the prompt as well.")] = False
    format: Annotated[Literal["text", "json"], typer.Option("--format", help="json: an object a line.")] = "text"
