"""The headless commands: what each takes. What it does is in the module of its name, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli import completion
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.train_options import Given, takes_train_options
from tui_transformer.cli.vocab_commands import vocabularies

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(vocabularies, name="vocab")

Position = Annotated[
    str | None,
    typer.Option(
        "--position",
        metavar="N|last|all",
        help="Where the answer is read; by default where the model answers, mostly the last token.",
    ),
]
Targets = Annotated[
    str | None,
    typer.Option("--targets", metavar="7,9,-1", help="The right token ID at every position; -1 = not counted."),
]
Of = Annotated[
    str | None,
    typer.Option("--of", metavar="KIND", help="Which attention: encoder, decoder or cross; by default the first."),
]
OneLayer = Annotated[int | None, typer.Option("--layer", help="Only this layer, from 0.")]
HideSpecial = Annotated[
    bool, typer.Option("--hide-special", help="Leave special tokens out and make the rest of each row sum to 1.")
]
HideFirst = Annotated[bool, typer.Option("--hide-first", help="The same with the first token.")]
TableFormat = Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")]


@app.command()
@takes_flags
def trace(
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="The file to write.")],
    steps: Annotated[str | None, typer.Option("--steps", metavar="GLOB", help="Only the steps that match.")] = None,
    targets: Targets = None,
    gradients: Annotated[
        bool, typer.Option("--gradients", help="Gradients of the mean cross-entropy too, of every step and weight.")
    ] = False,
    flags: Flags,
) -> None:
    """Write every step of a forward pass to an npz file, under its name; its gradient as gradient/<name>."""
    from tui_transformer.cli.trace import Request, run

    run(flags, Request(out, steps, targets, gradients))


@app.command()
@takes_flags
def show(
    *,
    step: Annotated[
        str | None,
        typer.Argument(
            metavar="STEP",
            help="A name, the end of one, or a pattern with *; without it, all steps are listed.",
            autocompletion=completion.steps,
        ),
    ] = None,
    head: Annotated[int | None, typer.Option("--head", help="Which head, from 0.")] = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="ROW,COLUMN", help="The terms that made one cell.")
    ] = None,
    gradient: Annotated[
        bool, typer.Option("--gradient", help="The gradient of the mean cross-entropy instead of the values.")
    ] = False,
    targets: Targets = None,
    format: Annotated[
        Literal["text", "json", "csv", "svg"] | None,
        typer.Option("--format", help="Text by default; for a file, what its name ends in."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything, however wide.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to .txt, .json, .csv, .svg or .npz.")
    ] = None,
    flags: Flags,
) -> None:
    """Show the steps, one step, or how one cell was made."""
    from tui_transformer.cli.show import Request, run

    run(flags, Request(step, head, explain, format, everything, out, targets, gradient))


@app.command()
@takes_flags
def diff(
    *,
    first: Annotated[str, typer.Argument(metavar="A", help="An npz trace, or a model's name or folder.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The same; without it, the model that the options name.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Cells differ by |a − b| > tolerance · max(1, |a|, |b|).")
    ] = 1e-5,
    flags: Flags,
) -> None:
    """Compare two traces step by step and name the first that differs.

    Exit code 0: every step that both have is the same; 1: one differs. Where no input is given, a model is traced on
    the token IDs that the file holds.
    """
    from tui_transformer.cli.diff import run

    run(flags, first, second, tolerance)


@app.command()
@takes_flags
def ablate(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]…",
            help="head:SUBLAYER:NUMBER, layer:LAYER, position:NUMBER, position:LAYER:NUMBER or neuron:SUBLAYER:NUMBER.",
        ),
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(
            "--each", metavar="KIND", help="Without WHAT: head (the default), layer, position, neuron:SUBLAYER."
        ),
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="Set to the mean over the positions instead of 0.")] = False,
    position: Position = None,
    format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")] = "text",
    flags: Flags,
) -> None:
    """Take out heads, layers, positions or neurons: what each does to the answer, or what changes without some.

    Without WHAT every head is ablated alone, and the table is sorted by the effect on the output.
    """
    from tui_transformer.cli.ablate import Request, run

    run(flags, Request(what or (), each, mean, position, format))


@app.command()
@takes_flags
def patch(
    *,
    step: Annotated[str, typer.Argument(metavar="STEP", autocompletion=completion.steps, help="A step.")],
    from_text: Annotated[
        str | None, typer.Option("--from-text", metavar="SENTENCE", help="The sentence that the values come from.")
    ] = None,
    from_ids: Annotated[str | None, typer.Option("--from-ids", metavar="4,5,6", help="Its token IDs instead.")] = None,
    rows: Annotated[str | None, typer.Option("--rows", metavar="3,5", help="Only these rows.")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="0,2", help="Only these heads.")] = None,
    position: Position = None,
    format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")] = "text",
    flags: Flags,
) -> None:
    """Give a step the values that it has for another sentence, and show what changes."""
    from tui_transformer.cli.patch import Request, run

    run(flags, Request(step, from_text, from_ids, rows, head, position, format))


@app.command()
@takes_flags
def generate(
    *,
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", help="At most so many tokens.")] = 40,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the most likely token.")] = False,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Logits are divided by it; 0 is --greedy.")
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Only so many of the most likely tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Only the most likely tokens that make up this share.")
    ] = None,
    sample_seed: Annotated[
        int | None, typer.Option("--sample-seed", help="Seed of the draws; by default that of --seed, else 0.")
    ] = None,
    stop_ids: Annotated[
        str | None,
        typer.Option("--stop-ids", metavar="2,13", help="Token IDs that end the text, instead of the model's."),
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep keys and values, or compute all again.")
    ] = True,
    with_prompt: Annotated[bool, typer.Option("--with-prompt", help="Write the prompt as well.")] = False,
    format: Annotated[Literal["text", "json"], typer.Option("--format", help="json: an object a line.")] = "text",
    flags: Flags,
) -> None:
    """Write a text on, token by token; --text is the prompt, or what an encoder reads.

    Where nothing is said, tokens are taken as the model's generation_config.json says, else the most likely one.
    A newline is added to a text that does not end with one.
    """
    from tui_transformer.cli.generate import Request, run

    sampling = (greedy, temperature, top_k, top_p, sample_seed)
    run(flags, Request(max_new_tokens, *sampling, stop_ids, cache, format, with_prompt))


@app.command()
@takes_train_options
def train(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The text; a run that is resumed knows it.", show_default=False),
    ] = None,
    given: Given,
) -> None:
    """Train a model on a text file, from the beginning or from where it was stopped.

    The folder --out is then a model as any other. Tasks: next-word, next-character and masked-word read a text;
    classify reads lines of a text, a tab and its label; pairs reads lines of a source, a tab and a target. Loss and
    accuracy are those of the batch; perplexity is e to the cross-entropy on examples that are not learned from.
    """
    from tui_transformer.cli.train import run

    run(file, given)


@app.command()
@takes_flags
def heads(
    *,
    of: Of = None,
    layer: OneLayer = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="MEASURE", help="entropy, previous, first, itself, separators or induction."),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The lowest first, or the last layer first.")] = False,
    hide_special: HideSpecial = False,
    hide_first: HideFirst = False,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    """Measure every head: entropy, and attention to the previous token, the first, itself and separators.

    A measure is the mean over the real tokens; – where a head has none.
    """
    from tui_transformer.analysis.token_kinds import Hidden
    from tui_transformer.cli.heads import Request, run

    run(flags, Request(of, layer, sort, reverse, Hidden(hide_special, hide_first), format))


@app.command()
@takes_flags
def links(
    *,
    of: Of = None,
    layer: OneLayer = None,
    head: Annotated[int | None, typer.Option("--head", help="Only this head, from 0.")] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many.")] = 20,
    itself: Annotated[
        bool, typer.Option("--itself/--no-itself", help="With links from a token to itself, or without.")
    ] = True,
    hide_special: HideSpecial = False,
    hide_first: HideFirst = False,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    """List the largest attention weights: which token looks at which, in which head."""
    from tui_transformer.analysis.links import Wanted
    from tui_transformer.analysis.token_kinds import Hidden
    from tui_transformer.cli.links import Request, run

    run(flags, Request(of, layer, Wanted(top, head, itself), Hidden(hide_special, hide_first), format))


@app.command()
@takes_flags
def rollout(
    *,
    of: Of = None,
    layer: Annotated[int | None, typer.Option("--layer", help="Up to this layer; by default the last.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything, however wide.")] = False,
    format: Annotated[
        Literal["text", "json", "csv", "svg"], typer.Option("--format", help="How to write it.")
    ] = "text",
    flags: Flags,
) -> None:
    """Show attention rollout: how much of each input token has reached each token after a layer."""
    from tui_transformer.cli.rollout import run

    run(flags, of, layer, format, everything=everything)


@app.command()
@takes_flags
def answer(
    *,
    top: Annotated[int, typer.Option("--top", min=1, help="How many tokens of each position.")] = 5,
    temperature: Annotated[float, typer.Option("--temperature", help="Logits are divided by it.")] = 1.0,
    position: Annotated[
        str | None,
        typer.Option(
            "--position", metavar="N|last|all", help="Only there; by default wherever the model was trained to answer."
        ),
    ] = None,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    """Show the most likely tokens at every position: words, logits, and probabilities at a temperature."""
    from tui_transformer.cli.answer import Request, run

    run(flags, Request(top, temperature, position, format))


@app.command()
@takes_flags
def lens(
    *,
    layer: Annotated[
        int | None, typer.Option("--layer", min=-1, help="Only this layer; -1 is what enters the first one.")
    ] = None,
    token: Annotated[int | None, typer.Option("--token", min=0, help="Only this token, from 0.")] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many words of each.")] = 1,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    """Show the logit lens: which words the residual stream spells after each layer."""
    from tui_transformer.cli.lens import Request, run

    run(flags, Request(layer, token, top, format))


@app.command()
def info(
    *,
    device: Annotated[Literal["auto", "cpu", "gpu"], typer.Option("--device", help="Where to compute.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Show versions, the device in use and why, and what machine and terminal offer."""
    from tui_transformer.cli.info import run

    run(device, as_json=json)


@app.command()
def fetch(
    *, name: Annotated[str, typer.Argument(metavar="ORG/NAME", help="A model, as its page in the hub is called.")]
) -> None:
    """Download a model into the cache of Hugging Face; needs the extra `fetch`.

    Only the configuration, the safetensors weights and the files of the tokenizer are fetched.
    """
    from tui_transformer.cli.fetch import run

    run(name)


@app.command()
def models() -> None:
    """List the models that --model can name: built in, in installed packages, and in the cache of Hugging Face."""
    from tui_transformer.cli.models import run

    run()
