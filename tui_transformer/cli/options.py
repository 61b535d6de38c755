"""The options that the explorer and the headless commands share, declared once, and how their values are written.

Only the standard library and typer are imported here: `--help` and `--version` wait for nothing else.
"""

from __future__ import annotations

import dataclasses
import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from tui_transformer.cli.typer_layer import Option, flag, option, option_name
from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import parse_size
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.model import Model
    from tui_transformer.model.options import ModelOptions, Reading

# What completion offers


def vocabularies(incomplete: str) -> list[str]:
    """Built-in vocabularies, and files."""
    from tui_transformer.text.vocabulary import built_in_vocabularies

    return _matching(built_in_vocabularies(), incomplete) + _files(incomplete)


def models(incomplete: str) -> list[str]:
    """Built-in models, and folders."""
    from tui_transformer.model.loading import BUILT_IN
    from tui_transformer.model.local_models import trained_models

    return _matching((*BUILT_IN, *trained_models()), incomplete) + _files(incomplete)


def steps(context: typer.Context, incomplete: str) -> list[str]:
    """The steps and weights of the model that the line names; none where it cannot be loaded."""
    from tui_transformer.model import Model

    try:
        program = Model.load(context.params.get("model") or Flags.usual).program(1)
    except InputError:
        return []
    return _matching((*program.names, *program.weights), incomplete)


def _matching(names: tuple[str, ...], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    return sorted(glob.glob(glob.escape(incomplete) + "*"))  # noqa: PTH207 - the beginning of a name, not a folder


# Values


def parse_ids(text: str, option: str = "--ids") -> tuple[int, ...]:
    """Token IDs between commas or spaces."""
    pieces = _pieces(text)
    for piece in pieces:
        if not re.fullmatch(r"-?[0-9]{1,18}", piece):
            raise UsageError(f"{option}: {piece[:40]!r} is not a token ID: write whole numbers, as 4,5,6")
    if not pieces:
        raise UsageError(f"{option}: there is no token ID: write whole numbers, as 4,5,6")
    return tuple(map(int, pieces))


def parse_targets(text: str | None, positions: int) -> tuple[int, ...]:
    """The token IDs of `--targets`, one for every position, where a minus sign of typography is one, too."""
    targets = parse_ids((text or "").replace("−", "-"), "--targets")
    if len(targets) != positions:
        raise InputError(f"--targets: {len(targets)}, where {positions} belong: give one a position, -1 for none")
    return targets


def _pieces(text: str) -> list[str]:
    return [piece for piece in re.split(r"[,\s]+", text) if piece]


# Options


SIZES = (
    *("layers", "decoder_layers", "d_model", "heads", "d_ff", "norm", "activation", "positions"),
    *("bias", "scale_embedding", "tie_output", "causal", "max_length"),
)
"""The options that are settings of a built-in model."""

OF_RANDOM_WEIGHTS = (*SIZES, "vocab", "seed", "embedding", "vectors")
"""The options that only a built-in model of random weights has: what the model reads is not among them."""

Layer = Annotated[int | None, Option("Only this layer, from 0.")]
Of = Annotated[str | None, Option("Which attention: encoder, decoder or cross; by default the first.", metavar="KIND")]
HideSpecial = Annotated[bool, Option("Leave special tokens out and make the rest of each row sum to 1.")]
HideFirst = Annotated[bool, Option("The same with the first token.")]
TableFormat = Annotated[Literal["text", "json", "csv"], Option("How to write it.")]
Theme = Annotated[str | None, Option("Colours: dark, light, or one of Textual.", metavar="NAME")]
Device = Annotated[Literal["auto", "cpu", "gpu"], Option("Where to compute.")]
Dtype = Annotated[Literal["float32", "float64"], Option("Precision.")]
Vocabulary = Annotated[str | None, Option("A vocabulary.", metavar="FILE|NAME", autocompletion=vocabularies)]
Into = Annotated[
    str | None,
    Option("The step that a transcoder writes; by default the output of the feed-forward layer.", metavar="STEP"),
]
Position = Annotated[
    str | None,
    Option(
        "Where the answer is read; by default where the model answers, mostly the last token.", metavar="N|last|all"
    ),
]
Targets = Annotated[
    str | None,
    Option(
        "The right token ID at every position; -1 = not counted. May be given again: the lists are put together.",
        several=True,
        metavar="7,9,-1",
    ),
]
LossTargets = Annotated[
    str | None,
    Option(
        "Of the loss: what is right at every position, -1 = not counted; by default the next token. "
        "May be given again.",
        several=True,
        metavar="WORD|ID,…",
    ),
]
Metric = Annotated[
    Literal["divergence", "logit", "log-probability", "difference", "loss"] | None,
    Option(
        "What is measured: KL divergence, a logit, ln p, the difference of two logits, or the loss. "
        "By default by how many tokens are named: none, one or two."
    ),
]
Tokens = Annotated[
    str | None,
    Option(
        "The words or IDs that are measured; of two, the difference of their logits. May be given again.",
        several=True,
        metavar="WORD[,WORD]",
    ),
]


@dataclass(frozen=True)
class Flags:
    """Options as they were given on the command line; None where an option was not."""

    usual: ClassVar[str] = "question"
    """The model where none is named; with sizes, words or a seed it is the encoder."""

    text: list[str] | None = option(
        None, "The sentence; may be given again, for a batch of sentences.", metavar="SENTENCE"
    )
    text_pair: str | None = option(
        None, "A second sentence beside --text, where a model reads pairs.", metavar="SENTENCE"
    )
    ids: str | None = option(
        None,
        "Token IDs instead of a sentence; pad IDs at the end are masked; 1,2;3,4 are two. May be given again.",
        several=True,
        metavar="4,5,6",
    )
    mask: str | None = option(
        None,
        "1 for every token that is read, 0 for padding on either side; may be given again.",
        several=True,
        metavar="0,0,1,1,1",
    )
    item: int = option(0, "Which sentence of several is shown, from 0; `trace` writes all.", min=0)
    bracket: bool = flag("Put [BOS] and [EOS], as the vocabulary calls them, around a sentence.")
    pad_to: int | None = option(None, "Pad a sentence to so many tokens; padding is masked.", min=1)
    decoder_text: str | None = option(None, "What an encoder-decoder has written so far.", metavar="SENTENCE")
    decoder_ids: str | None = option(
        None,
        "Its token IDs instead, start token included; may be given again.",
        several=True,
        metavar="0,4,5",
    )
    cut: bool = flag("Cut a sentence that is too long for the model or for --pad-to; what begins and ends it is kept.")
    vocab: Vocabulary = None
    model: str | None = option(
        None,
        "A trained model, encoder, decoder, encoder-decoder, attention, or a checkpoint's folder. "
        "[default: question, in generate story; with a size, --vocab or --seed encoder, of random weights]",
        metavar="FOLDER|NAME",
        autocompletion=models,
    )
    layers: int | None = option(None, "Layers of a built-in model.")
    decoder_layers: int | None = option(None, "Layers of the decoder beside a built-in encoder.")
    d_model: int | None = option(None, "Width of the vectors.")
    heads: int | None = option(None, "Attention heads.")
    d_ff: int | None = option(None, "Width of the feed-forward layer.")
    seed: int | None = option(None, "Seed of the random weights.")
    embedding: Literal["normal", "uniform", "zeros"] | None = option(
        None,
        "How new word vectors begin: normal(0, 0.2) as all weights; uniform in ±√(2 ÷ d_model), rows as long "
        "in every width; zeros, where only positions tell words apart.  [default: normal]",
    )
    vectors: str | None = option(
        None, "Word vectors of GloVe or word2vec for the words of the vocabulary.", metavar="FILE"
    )
    norm: Literal["post", "pre"] | None = option(None, "Layer norm after or before the sublayers.")
    activation: Literal["relu", "gelu"] | None = option(None, "Activation of the feed-forward layer.")
    positions: Literal["sinusoidal", "learned", "none"] | None = option(None, "Positional encoding.")
    bias: bool | None = option(None, "Biases in the projections.")
    scale_embedding: bool | None = option(None, "Embedding times √d_model.")
    tie_output: bool | None = option(None, "The embedding table is the output matrix.")
    causal: bool | None = option(None, "A query may not look at later keys.")
    max_length: int | None = option(
        None, "Tokens that the model reads at most; of a model of sentence vectors too, as far as it has positions."
    )
    unknown: Literal["token", "zero", "error"] = option(
        "token",
        "What a word is that the vocabulary does not have: [UNK], or what the model has for it; the vector 0; "
        "or a mistake.",
    )
    device: Device = "auto"
    dtype: Dtype = "float32"
    budget: str = option("512MiB", "Memory for values that are kept.", metavar="512MiB")

    @property
    def sentence(self) -> str | None:
        """The one sentence, where there is one; several are a mistake."""
        if self.text is not None and len(self.text) > 1:
            raise UsageError(f"--text is given {len(self.text)} times, and one sentence is read here: give it once")
        return self.text[0] if self.text else None

    def token_rows(self) -> tuple[tuple[int, ...], ...] | None:
        """The token IDs of every sentence, where they were given."""
        if self.ids is None:
            return None
        if self.text is not None:
            raise UsageError("give either --text or --ids, not both")
        return tuple(parse_ids(row) for row in self.ids.split(";"))

    def token_ids(self) -> tuple[int, ...] | None:
        """The same of the one sentence; several are a mistake."""
        rows = self.token_rows()
        if rows is not None and len(rows) > 1:
            raise UsageError(f"--ids has {len(rows)} sentences, and one is read here: give one")
        return None if rows is None else rows[0]

    def reading(self, otherwise: Reading | None = None) -> Reading:
        """The sentence that is read, of several the one that is shown; `otherwise` where none is given."""
        from tui_transformer.model.options import Reading

        otherwise = otherwise or Reading()
        mask, decoder_ids = self.token_mask(), self.decoder_token_ids()
        if mask is None and self.text is None and self.ids is None:
            mask = otherwise.mask
        if decoder_ids is None and self.decoder_text is None:
            decoder_ids = otherwise.decoder_ids
        more: dict[str, Any] = {"mask": mask, "decoder_text": self.decoder_text, "decoder_ids": decoder_ids}
        if self.text_pair is not None:
            return Reading(self.sentence, pair=self.text_pair, **more)
        held = () if otherwise.ids is None else (otherwise.ids,)
        rows: tuple[str | tuple[int, ...], ...] = tuple(self.token_rows() or self.text or held)
        if self.item >= max(len(rows), 1):
            count = f"are {len(rows)} sentences, from 0" if len(rows) > 1 else "is 1 sentence, 0"
            raise UsageError(f"--item {self.item}: there {count}")
        own = rows[self.item] if rows else None
        text, ids = (own, None) if isinstance(own, str) else (None, own)
        if len(rows) > 1:
            more |= {"batch": rows, "item": self.item}
        if self.mask is not None and (len(rows) > 1 or self.pad_to is not None):
            raise UsageError("--mask is of one sentence without --pad-to: padding makes its own")
        return Reading(text, ids, **more)

    def decoder_token_ids(self) -> tuple[int, ...] | None:
        """The same for the decoder of an encoder–decoder."""
        if self.decoder_ids is None:
            return None
        if self.decoder_text is not None:
            raise UsageError("give either --decoder-text or --decoder-ids, not both")
        return parse_ids(self.decoder_ids, "--decoder-ids")

    def token_mask(self) -> tuple[int, ...] | None:
        """1 for every token that is read and 0 for padding, where it was given."""
        if self.mask is None:
            return None
        pieces = _pieces(self.mask)
        wrong = next((piece for piece in pieces if piece not in ("0", "1")), "" if pieces else self.mask)
        if wrong or not pieces:
            raise UsageError(f"--mask: {wrong[:40]!r} is neither 1 nor 0: write one for every token, as 0,0,1,1,1")
        return tuple(map(int, pieces))

    def options(self) -> ModelOptions:
        """The same for the explorer and for loading the model."""
        if self.text_pair is not None and self.text is None:
            raise UsageError("--text-pair is a second sentence: give the first with --text")
        from tui_transformer.model.options import Framing, ModelOptions

        sizes = {name: value for name in SIZES if (value := getattr(self, name)) is not None}
        budget = parse_size(self.budget)
        if budget is None:
            raise UsageError(f"--budget: {self.budget[:40]!r} is not an amount of memory: write 512MiB, 2GiB or 0")
        random = any(getattr(self, name) is not None for name in OF_RANDOM_WEIGHTS)
        model = self.model
        tour = getattr(self, "tour", None)  # of a command that has one, which may lead through a model of its own
        if tour is not None:
            from tui_transformer.session.tour_stop import led_through

            model = led_through(tour, model)
        model = model or ("encoder" if random else self.usual)
        framing = Framing(self.bracket, self.pad_to)
        own = (framing, self.embedding, self.vectors, self.unknown)
        return ModelOptions(model, self.vocab, self.device, self.dtype, self.seed, sizes, budget, self.cut, *own)

    def featured(self, model: Model) -> Model:
        """The model as it reads the input: with the features of dictionaries, where a command has some."""
        return model

    def given(self) -> tuple[str, ...]:
        """The options of a model and its text that are not at their defaults, as they are written."""
        changed = (field.name for field in dataclasses.fields(Flags) if getattr(self, field.name) != field.default)
        return tuple(map(option_name, changed))


@dataclass(frozen=True)
class Edited(Flags):
    """The same with edits: the model computes with them."""

    edit: list[str] | None = option(
        None,
        "Change a step or weight: 0.output += 2*vector.npy, 0.self_attention.context[3] = 0 (a head), "
        "0.output[2:4] *= 0.5, 0.output += 4*'love' - 4*'hate', 0.output += 2*direction(good.txt, bad.txt), "
        "0.output -= along(vector.npy), … = mean, "
        "= mean(texts.txt). May be given again.",
        metavar="'STEP[…] OP …'",
    )


@dataclass(frozen=True)
class Featured(Edited):
    """The same with the features of a dictionary, which are steps of the model like any other."""

    features: Path | None = option(
        None,
        "The features of a dictionary are steps of the model, as `tui-transformer features` reads it.",
        metavar="FILE|FOLDER",
    )
    at: str | None = option(
        None, "The step that it reads; by default that of the hook that its file names.", metavar="STEP"
    )

    def check_features(self) -> None:
        """Refuse a place of none."""
        if self.at is not None and self.features is None:
            raise UsageError("--at is where a dictionary reads: name one with --features")

    def featured(self, model: Model) -> Model:
        self.check_features()
        if self.features is None:
            return model
        from tui_transformer.features.dictionary import Features

        return model.with_features(Features.load(self.features), self.at)
