"""Look into vocabularies, build them, and split text into tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli import parsing
from tui_transformer.cli.typer_layer import App, takes_request
from tui_transformer.cli.vocab_options import BuildRequest

app = App(
    rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True, help=__doc__
)
Vocabulary = Annotated[
    str,
    typer.Option("--vocab", metavar="FILE|NAME", help="A vocabulary.", autocompletion=parsing.vocabularies),
]
Named = Annotated[str, typer.Argument(metavar="NAME", autocompletion=parsing.vocabularies)]


@app.command("list")
def list_vocabularies() -> None:
    """List the vocabularies that come with the program.

    Example: tui-transformer vocab list
    """
    from tui_transformer.cli.vocab import show_list

    show_list()


@app.command("check")
def check_vocabulary(name: Annotated[str, typer.Argument(metavar="FILE")]) -> None:
    """Say what a vocabulary file holds: its kind, words, special words, and words that come twice or never.

    Example: tui-transformer vocab check words.txt
    """
    from tui_transformer.cli.vocab import check

    check(name)


@app.command("show")
def show_vocabulary(
    name: Named,
    *,
    first: Annotated[int, typer.Option("--from", min=0, help="The first ID.")] = 0,
    count: Annotated[int, typer.Option("--count", min=1, help="How many words.")] = 50,
) -> None:
    """Show words with their IDs, and what pieces stand for.

    Example: tui-transformer vocab show english --from 100 --count 10
    """
    from tui_transformer.cli.vocab import show as show_words

    show_words(name, first, count)


@app.command("search")
def search_vocabulary(
    query: Annotated[str, typer.Argument(metavar="TEXT")],
    *,
    vocab: Vocabulary = "waves",
    count: Annotated[int, typer.Option("--count", min=1, help="At most so many words.")] = 50,
) -> None:
    """Find the words that contain a text.

    Example: tui-transformer vocab search wav --vocab english
    """
    from tui_transformer.cli.vocab import search

    search(vocab, query, count)


@app.command("tokens")
def split_text(
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    *,
    vocab: Vocabulary = "waves",
    form: Annotated[
        Literal["text", "json"], typer.Option("--format", help="json: ID, token, start and end in characters.")
    ] = "text",
    special: Annotated[
        bool, typer.Option("--special/--no-special", help="With what the tokenizer adds before and after a text.")
    ] = True,
) -> None:
    """Split a text into tokens: IDs, words, places, and the text that the IDs stand for.

    Example: tui-transformer vocab tokens "The waves crashed" --vocab waves
    """
    from tui_transformer.cli.vocab import tokens

    tokens(vocab, text, form, special=special)


@app.command("decode")
def decode_ids(
    ids: Annotated[str, typer.Argument(metavar="4,5,6")],
    *,
    vocab: Vocabulary = "waves",
    around: Annotated[
        bool, typer.Option("--around", help="With begin, end and padding, and what comes after the end.")
    ] = False,
) -> None:
    """Show the text that token IDs stand for: up to the end word, without the begin word and without padding.

    Example: tui-transformer vocab decode 1,2,3 --vocab waves
    """
    from tui_transformer.cli.vocab import decode

    decode(vocab, ids, around=around)


@app.command("cut")
def cut_text(text: Annotated[str, typer.Argument(metavar="TEXT")], *, vocab: Vocabulary = "waves") -> None:
    """Cut a text and explain each piece: its ID, what it stands for, and the characters that it covers.

    Example: tui-transformer vocab cut "The waves crashed" --vocab english
    """
    from tui_transformer.cli.vocab import cut

    cut(vocab, text)


@app.command("compare")
def compare_vocabularies(
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    *,
    vocab: Annotated[
        list[str],
        typer.Option(
            "--vocab",
            metavar="FILE|NAME",
            help="A vocabulary, or several as a,b; may be given again.",
            autocompletion=parsing.vocabularies,
        ),
    ],
) -> None:
    """Show how several vocabularies cut a text, side by side.

    Example: tui-transformer vocab compare "The waves crashed" --vocab waves,english
    """
    from tui_transformer.cli.vocab import compare

    compare(vocab, text)


@app.command("build")
@takes_request
def build_vocabulary(*, request: BuildRequest) -> None:
    """Build a vocabulary from text: its most frequent words, its characters, or byte pairs.

    What is equally frequent comes in the order of its first appearance. Counts are exact for texts of any size: beyond
    a million distinct words they go to temporary files. How words are split is written into the file.

    Example: tui-transformer vocab build text.txt --kind bpe --size 400 -o bpe.json
    """
    from tui_transformer.cli.vocab_build import run

    run(request)
