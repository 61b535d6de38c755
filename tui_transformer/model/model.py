"""A model: a configuration, its weights, and a tokenizer; it gives traces."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.parts import DEFAULT_BUDGET, check_memory
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import checkpoint, loading
from tui_transformer.model.checks import as_plain, shown
from tui_transformer.model.loading import UNKNOWN, Added, Dictionary, New, Parts, program_of
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.texts import (
    DECODER,
    Givens,
    Texts,
    all_visible,
    as_counted,
    checked_ids,
    checked_mask,
    givens_of,
    padded,
    segments_of,
    until_last,
)
from tui_transformer.model.word_vectors import WordVectors
from tui_transformer.records import dataclass
from tui_transformer.text.vocabulary import Vocabulary

EMBEDDING = "embedding.tokens"
MOST_NAMED, LONGEST = 3, 60
"""Tensors that nothing reads: how many are named, and so many characters of each."""


def _again(load: Callable[[], Parts], own: Mapping[str, Any]) -> Model:
    return Model(**{**vars(load()), **own})


@dataclass(frozen=True, eq=False)
class Model(Texts):
    """A transformer that can be traced.

    Attributes:
        added: Steps beside those of the configuration, as features have them.
    """

    added: tuple[Added, ...] = ()

    def __repr__(self) -> str:
        where = f" from {self.folder}" if self.folder is not None else ""
        return f"<Model {self.name}{where}: {self.config.summary}; {self.backend.name} {self.backend.dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, its weights are a reference to their file or seed; InputError where they are in memory alone."""
        own = {name: getattr(self, name) for name in ("name", "config", "seed", "unknown", "own_length", "added")}
        return _again, (self.weights.opened_again(), own)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be known of the model, a line each: tensors that nothing reads, texts longer than it is for."""
        said = [] if self.unread_said is None else [self.unread_said]
        if self.own_length is not None and self.most_tokens > self.own_length:
            own, most = f"{self.own_length:,}", f"{self.most_tokens:,}"
            said.append(f"{self.name} reads up to {most} tokens, as asked: it was made for {own}, as its folder says")
        return tuple(said)

    @property
    def unread_said(self) -> str | None:
        """That the file has tensors that nothing reads, in one line; None where it has none."""
        if not self.unread:
            return None
        count = f"{len(self.unread):,} tensors" if len(self.unread) > 1 else "a tensor"
        named = ", ".join(each[:LONGEST] for each in self.unread[:MOST_NAMED])
        more = f" and {len(self.unread) - MOST_NAMED:,} more" if len(self.unread) > MOST_NAMED else ""
        return f"{self.name}: nothing here reads {count} of the file: {named}{more}"

    @property
    def has_vector(self) -> Host | None:
        """For every word whether the file of word vectors has it; None where the embedding is of no such file."""
        vectors = None if self.embedding is None else self.embedding.vectors
        return None if vectors is None else vectors.there

    @classmethod
    def load(
        cls,
        where: str | Path = "encoder",
        *,
        vocabulary: str | Path | Vocabulary | None = None,
        device: str = "auto",
        dtype: str = "float32",
        seed: int | None = None,
        embedding: str | None = None,
        vectors: str | Path | WordVectors | None = None,
        unknown: str = "token",
        **sizes: Any,
    ) -> Model:
        """A built-in model by name, or a checkpoint.

        Args:
            where: "encoder", "decoder", "encoder-decoder", "attention", or a checkpoint: its folder, a file in that, an
                installed package that carries one, or `org/name` in the local cache of Hugging Face.
            vocabulary: A built-in vocabulary's name or a file; by default the model's own.
            device: "auto", "cpu" or "gpu".
            dtype: "float32" or "float64".
            seed: Of the random weights of a built-in model.
            embedding: How its table of words begins: "normal", "uniform" (±√(2 ÷ d)) or "zeros".
            vectors: A file of GloVe or word2vec, whose vectors are rows of that table.
            unknown: What words outside the vocabulary are: "token" ([UNK]), "zero" (the vector 0) or "error".
            sizes: Settings of a built-in model, as in `config.json`: d_model, heads, d_ff, layers, norm …; of a model
                of sentence vectors max_length alone, which may be more than its folder says.

        Raises:
            InputError: What was given cannot be used; the message says why.
        """
        if not isinstance(where, str | Path):
            raise UsageError(f"a model is a name or a path, not {type(where).__name__}")
        sizes = {name: as_plain(value) for name, value in sizes.items()}
        parts = loading.load(where, vocabulary, (device, dtype), New(as_plain(seed), embedding, vectors), sizes)
        if unknown not in UNKNOWN:
            raise UsageError(f"unknown {shown(unknown)}: unknown words are read as {', '.join(UNKNOWN)}")
        model = cls(**{**vars(parts), "unknown": unknown})
        if unknown == "zero" and (model.vocabulary is None or model.vocabulary.unknown_id is None):
            raise UsageError(f"unknown zero: no word is unknown to {model.name}, so there is none to be the vector 0")
        return model

    @property
    def backend(self) -> Backend:
        """Where it is computed."""
        return self.weights.backend

    def program(self, length: int, decoder_length: int = 1) -> Program:
        """The steps for a sentence of this many tokens (and, beside an encoder, so many of the decoder)."""
        return self.program_of(Lengths(length, decoder_length if self.has_decoder else 0))

    def program_of(self, lengths: Lengths) -> Program:
        """The same for any lengths, tokens before whose keys and values were kept included."""
        words, target = self.vocabulary, self.target_vocabulary
        silent: tuple[tuple[str, int | None], ...] = ()
        if self.unknown == "zero" and words is not None and target is not None:
            silent = (EMBEDDING, words.unknown_id), (f"{DECODER}{EMBEDDING}", target.unknown_id)
        program = program_of(self.config, lengths, silent)
        for each in self.added:
            program = each.extended(program)
        return program

    def with_features(
        self, features: Dictionary, at: str | None = None, *, into: str | None = None, replace: bool = False
    ) -> Model:
        """The same model with the features of a dictionary as steps, n × features and n × d, in the units of the model.

        These are `AT.pre_activations`, `AT.features`, `AT.reconstruction`, what the features write, and `AT.error`,
        what is there less that. The model computes what it computes without them until features, reconstruction or
        error are changed: then what they are together goes on, the error being that of before the change (Marks et al.
        2024, arXiv 2403.19647, §3.1). The weights of the dictionary are read when they are needed.

        Args:
            features: What `Features.load` gives.
            at: The step that is read, AT; by default that of the hook that the file names. Of a cross-layer transcoder
                `{}` is the number of the layer, as "decoder.{}.feed_forward.norm".
            into: The step that is written, where it is another one: by default that of the file's second hook, or of a
                transcoder the output of the feed-forward layer that reads AT.
            replace: The reconstruction goes on in the model's place, whatever it leaves.

        Raises:
            InputError: There are no such steps, or they are of another width than the dictionary.
        """
        if not hasattr(features, "placed"):
            raise UsageError(f"features are what Features.load gives, not {type(features).__name__}")
        added = features.placed(self.program(1), at, into, replaces=replace)
        return dataclasses.replace(self, weights=added.beside(self.weights), added=(*self.added, added))

    def trace(
        self,
        text: str | Sequence[str] | None = None,
        *,
        ids: Sequence[int] | Sequence[Sequence[int]] | Host | None = None,
        mask: Sequence[int] | Sequence[Sequence[int]] | Host | None = None,
        decoder_text: str | None = None,
        decoder_ids: Sequence[int] | Sequence[Sequence[int]] | Host | None = None,
        pair: str | None = None,
        segments: Sequence[int] | None = None,
        budget: int = DEFAULT_BUDGET,
        cut: bool = False,
    ) -> Trace:
        """The values for a sentence; nothing is computed yet.

        Args:
            text: A sentence, or a list of them: the shorter ones are padded at the end. Arrays have a batch axis where
                a list was given, be it of one.
            ids: Token IDs instead, or a batch of equally long rows of them. Without a mask, runs of the pad ID at the
                beginning and at the end of a row are padding (at the end of a decoder's, where it changes no other
                token, they are read).
            mask: 1 for every token and 0 for padding, on either side. In a decoder the first token that is no padding
                has the first place.
            decoder_text: What a decoder beside an encoder has written so far; its start token is put in front.
            decoder_ids: Token IDs of the decoder instead, start token included: one row for all sentences, or one for
                each. By default the start token alone.
            pair: A second sentence beside the text, for a model that reads pairs.
            segments: With IDs, the segment (token type) of each token; by default 0.
            budget: Bytes that may be kept.
            cut: Leave out tokens of a text past the model's length instead of refusing.

        Raises:
            InputError: Both or neither of text and IDs, IDs outside the vocabulary, too many tokens, too little memory,
                or a second sentence for a model that reads one.
        """
        if decoder_text is not None or decoder_ids is not None:
            self.check_decoder()
        if not self.config.vocab_size:
            if any(given is not None for given in (text, ids, mask)):
                raise InputError(f"{self.name} reads no tokens: its Q, K and V are given")
            batched = None
            givens = givens_of(np.zeros((1, self.config.max_length), dtype=np.int64), self.config)
        else:
            rows, givens, batched = self._source(text, ids, mask, pair, segments, cut=cut)
            givens |= self._decoder_givens(rows, decoder_text, decoder_ids, cut=cut)
        if self.reads_again:  # of a padded text one token more, in the place of the first that is padding
            name = f"{DECODER}input.visible"
            givens = {**givens, name: givens[name] & until_last(givens["input.visible"])}
        lengths = [givens[name].shape[1] for name in ("input.places", "decoder.input.places") if name in givens]
        program = self.program_of(as_counted(Lengths(*lengths), givens, self.config))
        needed = max((math.prod(step.shape) for step in program.steps if not step.windowed), default=0)
        words: dict[str, Any] = {"title": self.name, "word": self.word, "target_word": self.target_word}
        values = {name: givens[name] for name in program.givens}
        trace = Trace(program, self.weights, values, budget, batched=batched, **words)
        needed *= self.backend.dtype.itemsize * trace.batch
        check_memory(needed, f"{trace.batch * sum(lengths):,} tokens need", "use fewer tokens")
        return trace

    def _source(
        self, text: Any, ids: Any, mask: Any, pair: str | None, segments: Sequence[int] | None, *, cut: bool
    ) -> tuple[Host, Givens, bool]:
        """Token IDs of the sentences, the inputs that follow from them, and whether they are a list of several."""
        if (text is None) == (ids is None):
            raise UsageError("give either a text or token IDs")
        if text is not None and not isinstance(text, str | Sequence):
            raise UsageError("a sentence is a text: give token IDs by name, trace(ids=[…])")
        if text is None:
            rows, several = self._ids(ids), np.ndim(ids) > 1
        elif isinstance(text, str):
            encoding = self.encode(text, cut=cut, pair=pair)
            rows, segments, several = self._ids([encoding.ids]), encoding.segments, False
        else:
            if mask is not None or pair is not None:
                raise UsageError("several sentences make their own mask, and none is a pair: give token IDs instead")
            if isinstance(text, bytes) or not all(isinstance(each, str) for each in text):
                raise UsageError("a sentence is a text: give token IDs by name, trace(ids=[…])")
            if not text:
                raise InputError("there is no sentence: give at least one")
            given, mask = padded([self.encode(each, cut=cut).ids for each in text], self.config.pad_id)
            rows, several = self._ids(given), True
        givens = givens_of(rows, self.config, visible=checked_mask(mask, rows)) | segments_of(
            segments, rows, self.config
        )
        return rows, givens, several

    def _decoder_givens(self, source: Host, text: str | None, ids: Sequence[Any] | Host | None, *, cut: bool) -> Givens:
        """The same for the decoder's tokens, as many rows of them as the source has."""
        if not self.has_decoder:
            return {}
        batch = len(source)
        if self.reads_again and text is None and ids is None:
            ids = [self.read_again(row) for row in source.tolist()]
        if text is not None and ids is not None:
            raise UsageError("give the decoder either a text or token IDs")
        rows = self._ids(self.encode_target(text or "", cut=cut).ids if ids is None else ids, target=True)
        if self.reads_again and rows.shape[1] != source.shape[1]:
            wanted = f"as many tokens as its encoder, {source.shape[1]}"
            raise InputError(f"{self.name} classifies: its decoder reads {wanted}")
        if len(rows) not in (1, batch):
            raise InputError(f"{len(rows)} rows of decoder IDs do not fit {batch}: give one, or one for each sentence")
        return givens_of(np.broadcast_to(rows, (batch, rows.shape[1])), self.config, DECODER)

    def trace_after(
        self,
        kept: Mapping[str, Array],
        past: int,
        ids: Sequence[Sequence[int]] | Host,
        decoder_ids: Sequence[Sequence[int]] | Host | None = None,
        *,
        mask: Sequence[Sequence[int]] | Host | None = None,
        budget: int = DEFAULT_BUDGET,
    ) -> Trace:
        """The values of the last tokens only, with keys and values of the first `past` tokens kept from a trace before.

        Args:
            kept: `<attention>.key_kept` and `.value_kept`, B × g × past × d_k, on the device.
            past: Tokens before; of the decoder where there are two sequences. 0 computes all.
            ids: Token IDs of the whole sentences (B × n), those before included.
            decoder_ids: Those of a decoder beside an encoder.
            mask: 1 for every token of `ids` and 0 for padding; without it a decoder alone reads all, an encoder all but
                pad IDs.
            budget: Bytes that may be kept.

        Raises:
            InputError: IDs outside the vocabulary, or too many of them, or a mask that does not fit them.
        """
        lengths, givens = self.inputs_after(past, ids, decoder_ids, mask=mask)
        program = self.program_of(lengths)
        values = givens | dict(kept)
        return Trace(program, self.weights, {name: values[name] for name in program.givens}, budget)

    def inputs_after(
        self,
        past: int,
        ids: Sequence[Sequence[int]] | Host,
        decoder_ids: Sequence[Sequence[int]] | Host | None = None,
        *,
        mask: Sequence[Sequence[int]] | Host | None = None,
    ) -> tuple[Lengths, dict[str, Host]]:
        """The lengths that `trace_after` has a program for, and the inputs of that but for what was kept."""
        rows, target = self._ids(ids), None if decoder_ids is None else self._ids(decoder_ids, target=True)
        visible = checked_mask(mask, rows)
        if visible is None and not self.has_decoder:
            visible = all_visible(rows)
        givens = givens_of(rows, self.config, visible=visible)
        if target is not None:
            givens |= givens_of(target, self.config, DECODER, all_visible(target))
        lengths = Lengths(*(each.shape[1] for each in (rows, target) if each is not None))
        lengths = as_counted(lengths, givens, self.config)
        if past:
            prefix = f"{DECODER if self.has_decoder else ''}input."
            later = {name: values[:, past:] for name, values in givens.items() if name.startswith(prefix)}
            every = {f"{prefix}visible": givens[f"{prefix}visible"], f"{prefix}key_places": givens[f"{prefix}places"]}
            givens |= later | every
            lengths = lengths.after(past)
        return lengths, givens

    def _ids(self, ids: Sequence[Any] | Host | None, *, target: bool = False) -> Host:
        return checked_ids(ids, self.config, self.target_size if target else self.config.vocab_size)

    def changed(
        self,
        *,
        vocabulary: str | Path | Vocabulary | None = None,
        device: str | None = None,
        dtype: str | None = None,
        seed: int | None = None,
        **sizes: Any,
    ) -> Model:
        """The same model with other settings; sizes and seed only of a built-in one.

        Raises:
            InputError: A setting that cannot be; this model is as it was.
        """
        words = vocabulary or self.vocabulary
        where: str | Path = self.name if self.folder is None else self.folder
        given = {"architecture", "vocab_size", "pad_id", "start_id", "model_type"}
        settings = {} if self.folder is not None else self.config.to_json()
        given |= {"causal"} if settings.get("architecture") == "decoder" else set()  # which it always is
        old = {key: value for key, value in settings.items() if key not in given}
        old_seed = self.seed if seed is None else seed
        start: dict[str, Any] = {} if self.embedding is None else {"embedding": self.embedding.start}
        if self.embedding is not None and (vectors := self.embedding.vectors) is not None:
            start["vectors"] = vectors if vocabulary is None else vectors.path  # read again for other words
        length = {} if self.own_length is None else {"max_length": self.most_tokens}
        new = Model.load(
            where,
            vocabulary=words,
            device=device or self.backend.device,
            dtype=dtype or str(self.backend.dtype),
            seed=old_seed,
            unknown=self.unknown,
            **start | old | length | sizes,
        )
        weights = new.weights
        for each in self.added:
            each.check(new.program(1))
            weights = each.beside(weights)
        return dataclasses.replace(new, name=self.name, weights=weights, added=self.added)

    def save(self, folder: str | Path) -> None:
        """Write the model as a checkpoint folder.

        Raises:
            InputError: The folder cannot be written, or the model has features, which no `config.json` says.
        """
        if self.added:
            raise InputError(f"{self.name} has features, which are in a file of their own: save the model without them")
        program = self.program(1)
        arrays = {
            name: self.backend.to_host(self.weights.get(name, shape_of(axes))) for name, axes in program.weights.items()
        }
        checkpoint.save(Path(folder), self.config, arrays, self.vocabulary)
