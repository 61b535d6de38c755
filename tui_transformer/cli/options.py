"""The options that the explorer and the headless commands share, declared once.

Only the standard library and typer are imported here: `--help` and `--version` wait for nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from tui_transformer.cli import parsing
from tui_transformer.cli.parsing import USUAL, parse_budget, parse_ids, parse_mask, written
from tui_transformer.cli.typer_layer import SEVERAL
from tui_transformer.errors import UsageError

if TYPE_CHECKING:
    from tui_transformer.model.options import ModelOptions, Reading


SIZES = (
    "layers",
    "decoder_layers",
    "d_model",
    "heads",
    "d_ff",
    "norm",
    "activation",
    "positions",
    "bias",
    "scale_embedding",
    "tie_output",
    "causal",
    "max_length",
)
"""The options that are settings of a built-in model."""

OF_SIZES = "encoder"
"""The model where none is named: a trained one; with sizes, a vocabulary or a seed, a new one of random weights."""

OF_RANDOM_WEIGHTS = (*SIZES, "vocab", "seed", "embedding", "vectors")
"""The options that only a built-in model of random weights has: what the model reads is not among them."""


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, **more)


@dataclass(frozen=True)
class Flags:
    """Options as they were given on the command line; None where an option was not."""

    usual: ClassVar[str] = USUAL
    """The model where none is named; with sizes, words or a seed it is the encoder."""

    text: Annotated[
        list[str] | None,
        _option("--text", metavar="SENTENCE", help="The sentence; may be given again, for a batch of sentences."),
    ] = None
    text_pair: Annotated[
        str | None,
        _option("--text-pair", metavar="SENTENCE", help="A second sentence beside --text, where a model reads pairs."),
    ] = None
    ids: Annotated[
        str | None,
        _option(
            "--ids",
            metavar="4,5,6",
            help="Token IDs instead of a sentence; pad IDs at the end are masked; 1,2;3,4 are two. May be given again.",
        ),
        SEVERAL,
    ] = None
    mask: Annotated[
        str | None,
        _option(
            "--mask",
            metavar="0,0,1,1,1",
            help="1 for every token that is read, 0 for padding on either side; may be given again.",
        ),
        SEVERAL,
    ] = None
    item: Annotated[
        int, _option("--item", min=0, help="Which sentence of several is shown, from 0; `trace` writes all.")
    ] = 0
    bracket: Annotated[
        bool, _option("--bracket", help="Put [BOS] and [EOS], as the vocabulary calls them, around a sentence.")
    ] = False
    pad_to: Annotated[
        int | None, _option("--pad-to", min=1, help="Pad a sentence to so many tokens; padding is masked.")
    ] = None
    decoder_text: Annotated[
        str | None,
        _option("--decoder-text", metavar="SENTENCE", help="What an encoder-decoder has written so far."),
    ] = None
    decoder_ids: Annotated[
        str | None,
        _option(
            "--decoder-ids", metavar="0,4,5", help="Its token IDs instead, start token included; may be given again."
        ),
        SEVERAL,
    ] = None
    cut: Annotated[
        bool,
        _option(
            "--cut",
            help="Cut a sentence that is too long for the model or for --pad-to; what begins and ends it is kept.",
        ),
    ] = False
    vocab: Annotated[
        str | None,
        _option("--vocab", metavar="FILE|NAME", help="A vocabulary.", autocompletion=parsing.vocabularies),
    ] = None
    model: Annotated[
        str | None,
        _option(
            "--model",
            metavar="FOLDER|NAME",
            help="A trained model, encoder, decoder, encoder-decoder, attention, or a checkpoint's folder. "
            "[default: question, in generate story; with a size, --vocab or --seed encoder, of random weights]",
            autocompletion=parsing.models,
        ),
    ] = None
    layers: Annotated[int | None, _option("--layers", help="Layers of a built-in model.")] = None
    decoder_layers: Annotated[
        int | None, _option("--decoder-layers", help="Layers of the decoder beside a built-in encoder.")
    ] = None
    d_model: Annotated[int | None, _option("--d-model", help="Width of the vectors.")] = None
    heads: Annotated[int | None, _option("--heads", help="Attention heads.")] = None
    d_ff: Annotated[int | None, _option("--d-ff", help="Width of the feed-forward layer.")] = None
    seed: Annotated[int | None, _option("--seed", help="Seed of the random weights.")] = None
    embedding: Annotated[
        Literal["normal", "uniform", "zeros"] | None,
        _option(
            "--embedding",
            help="How new word vectors begin: normal(0, 0.2) as all weights; uniform in ±√(2 ÷ d_model), rows as long "
            "in every width; zeros, where only positions tell words apart.  [default: normal]",
        ),
    ] = None
    vectors: Annotated[
        str | None,
        _option("--vectors", metavar="FILE", help="Word vectors of GloVe or word2vec for the words of the vocabulary."),
    ] = None
    norm: Annotated[
        Literal["post", "pre"] | None, _option("--norm", help="Layer norm after or before the sublayers.")
    ] = None
    activation: Annotated[
        Literal["relu", "gelu"] | None, _option("--activation", help="Activation of the feed-forward layer.")
    ] = None
    positions: Annotated[
        Literal["sinusoidal", "learned", "none"] | None, _option("--positions", help="Positional encoding.")
    ] = None
    bias: Annotated[bool | None, _option("--bias/--no-bias", help="Biases in the projections.")] = None
    scale_embedding: Annotated[
        bool | None, _option("--scale-embedding/--no-scale-embedding", help="Embedding times √d_model.")
    ] = None
    tie_output: Annotated[
        bool | None, _option("--tie-output/--no-tie-output", help="The embedding table is the output matrix.")
    ] = None
    causal: Annotated[bool | None, _option("--causal/--no-causal", help="A query may not look at later keys.")] = None
    max_length: Annotated[
        int | None,
        _option(
            "--max-length",
            help="Tokens that the model reads at most; of a model of sentence vectors too, as far as it has positions.",
        ),
    ] = None
    unknown: Annotated[
        Literal["token", "zero", "error"],
        _option(
            "--unknown",
            help="What a word is that the vocabulary does not have: [UNK], or what the model has for it; the vector 0; "
            "or a mistake.",
        ),
    ] = "token"
    device: Annotated[Literal["auto", "cpu", "gpu"], _option("--device", help="Where to compute.")] = "auto"
    dtype: Annotated[Literal["float32", "float64"], _option("--dtype", help="Precision.")] = "float32"
    budget: Annotated[str, _option("--budget", metavar="512MiB", help="Memory for values that are kept.")] = "512MiB"

    @property
    def sentence(self) -> str | None:
        """The one sentence, where there is one.

        Raises:
            UsageError: There are several.
        """
        if self.text is not None and len(self.text) > 1:
            raise UsageError(f"--text is given {len(self.text)} times, and one sentence is read here: give it once")
        return self.text[0] if self.text else None

    def token_rows(self) -> tuple[tuple[int, ...], ...] | None:
        """The token IDs of every sentence, where they were given.

        Raises:
            UsageError: A piece is not a number, there is none, or there is a sentence too.
        """
        if self.ids is None:
            return None
        if self.text is not None:
            raise UsageError("give either --text or --ids, not both")
        return tuple(parse_ids(row) for row in self.ids.split(";"))

    def token_ids(self) -> tuple[int, ...] | None:
        """The same of the one sentence.

        Raises:
            UsageError: There are several.
        """
        rows = self.token_rows()
        if rows is not None and len(rows) > 1:
            raise UsageError(f"--ids has {len(rows)} sentences, and one is read here: give one")
        return None if rows is None else rows[0]

    def reading(self, otherwise: Sequence[tuple[int, ...]] | None = None) -> Reading:
        """The sentence that is read; of several the one that is shown.

        Args:
            otherwise: The token IDs of sentences, where neither they nor a text were given.

        Raises:
            UsageError: Something that was given cannot be, or does not go with the rest.
        """
        from tui_transformer.model.options import Reading

        if self.text_pair is not None:
            return Reading(self.sentence, pair=self.text_pair, **self._mask_and_decoder())
        rows: tuple[str | tuple[int, ...], ...] = tuple(self.token_rows() or self.text or otherwise or ())
        if self.item >= max(len(rows), 1):
            count = f"are {len(rows)} sentences, from 0" if len(rows) > 1 else "is 1 sentence, 0"
            raise UsageError(f"--item {self.item}: there {count}")
        own = rows[self.item] if rows else None
        text, ids = (own, None) if isinstance(own, str) else (None, own)
        several: dict[str, Any] = {"batch": rows, "item": self.item} if len(rows) > 1 else {}
        if self.mask is not None and (several or self.pad_to is not None):
            raise UsageError("--mask is of one sentence without --pad-to: padding makes its own")
        return Reading(text, ids, **self._mask_and_decoder(), **several)

    def _mask_and_decoder(self) -> dict[str, Any]:
        decoder_ids = self.decoder_token_ids()
        return {"mask": self.token_mask(), "decoder_text": self.decoder_text, "decoder_ids": decoder_ids}

    def decoder_token_ids(self) -> tuple[int, ...] | None:
        """The same for the decoder of an encoder–decoder."""
        if self.decoder_ids is None:
            return None
        if self.decoder_text is not None:
            raise UsageError("give either --decoder-text or --decoder-ids, not both")
        return parse_ids(self.decoder_ids, "--decoder-ids")

    @property
    def framed(self) -> tuple[str, ...]:
        """The options given that put something around a sentence or choose one of several, as they are written."""
        return tuple(written(name) for name in ("item", "bracket", "pad_to") if getattr(self, name))

    def token_mask(self) -> tuple[int, ...] | None:
        """1 for every token that is read and 0 for padding, where it was given.

        Raises:
            UsageError: A piece is neither, or there is none.
        """
        return None if self.mask is None else parse_mask(self.mask)

    def led_through(self) -> str | None:
        """The model of the tour that is asked for, if one is: it is meant where none is named."""
        return None

    def options(self) -> ModelOptions:
        """The same for the explorer and for loading the model.

        Raises:
            UsageError: A setting cannot be, or there is a second sentence without a first.
        """
        if self.text_pair is not None and self.text is None:
            raise UsageError("--text-pair is a second sentence: give the first with --text")
        from tui_transformer.model.options import Framing, ModelOptions

        sizes = {name: value for name in SIZES if (value := getattr(self, name)) is not None}
        budget = parse_budget(self.budget)
        random = any(getattr(self, name) is not None for name in OF_RANDOM_WEIGHTS)
        model = self.model or self.led_through() or (OF_SIZES if random else self.usual)
        framing = Framing(self.bracket, self.pad_to)
        own = (framing, self.embedding, self.vectors, self.unknown)
        return ModelOptions(model, self.vocab, self.device, self.dtype, self.seed, sizes, budget, self.cut, *own)

    def given(self) -> tuple[str, ...]:
        """The options of a model and its text that are not at their defaults, as they are written."""
        changed = (field.name for field in dataclasses.fields(Flags) if getattr(self, field.name) != field.default)
        return tuple(map(written, changed))


@dataclass(frozen=True)
class Edited(Flags):
    """The same with edits: the model computes with them."""

    edit: Annotated[
        list[str] | None,
        _option(
            "--edit",
            metavar="'STEP[…] OP …'",
            help="Change a step or weight: 0.output += 2*vector.npy, 0.self_attention.context[3] = 0 (a head), "
            "0.output[2:4] *= 0.5, 0.output += 4*'love' - 4*'hate', … = mean, = mean(texts.txt). May be given again.",
        ),
    ] = None


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
    typer.Option(
        "--targets",
        metavar="7,9,-1",
        help="The right token ID at every position; -1 = not counted. May be given again: the lists are put together.",
    ),
    SEVERAL,
]
LossTargets = Annotated[
    str | None,
    typer.Option(
        "--targets",
        metavar="WORD|ID,…",
        help="Of the loss: what is right at every position, -1 = not counted; by default the next token. "
        "May be given again.",
    ),
    SEVERAL,
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
Metric = Annotated[
    Literal["divergence", "logit", "log-probability", "difference", "loss"] | None,
    typer.Option(
        "--metric",
        help="What is measured: KL divergence, a logit, ln p, the difference of two logits, or the loss. "
        "By default by how many tokens are named: none, one or two.",
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="WORD[,WORD]",
        help="The words or IDs that are measured; of two, the difference of their logits. May be given again.",
    ),
    SEVERAL,
]
