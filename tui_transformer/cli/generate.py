"""`generate`: a text is written on, one token after another, on standard output."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy.random  # noqa: F401 - its import loses an interrupt: do it before anything is written
import typer

from tui_transformer.cli.commands.generate import Request
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit, note
from tui_transformer.cli.parsing import parse_ids, written
from tui_transformer.cli.session import edits_of, loaded, read
from tui_transformer.engine.parts import readable
from tui_transformer.errors import InputError, UsageError
from tui_transformer.generation.rules import Defaults, Ids, defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.text import TextStream
from tui_transformer.generation.writing import State, Writer
from tui_transformer.model import Model
from tui_transformer.model.loading import built_in_name
from tui_transformer.session.open_session import EXAMPLE_IDS
from tui_transformer.text.encoding import Encoding
from tui_transformer.text.known_words import sample_sentence

INTERRUPTED = 128 + 2
DRAWING = ("temperature", "top_k", "top_p")


def run(request: Request) -> None:
    """Write on from the prompt until it ends.

    Raises:
        InputError: The model does not write, or something that was given cannot be used.
    """
    if request.framed:
        raise UsageError(f"{request.framed[0]}: a prompt is read as it is: leave it out")
    seed = request.seed if request.sample_seed is None else request.sample_seed
    request = dataclasses.replace(request, model=request.model or usual(request))
    read = built_in_name(request.model or "") is None
    model = loaded((dataclasses.replace(request, seed=None) if read else request).options())
    defaults = defaults_of(model)
    draws = request.sample_seed is not None or (read and seed is not None)
    settings = _settings(defaults.settings, request, seed or 0, draws=draws)
    writer = _writer(model, settings, _stopping(defaults, model, request.stop_ids), request)
    prompt = _prompt(writer, request)
    if defaults.note:
        note(defaults.note)
    _write(writer, prompt, _OUTPUTS[request.format](model, prompt, with_prompt=request.with_prompt))


# What was given


def usual(flags: Flags) -> str:
    """The model that writes where none is named: the trained one, or a random one of the sizes that were given."""
    return "story" if not flags.options().sizes and flags.vocab is None else "decoder"


def _settings(own: Settings, request: Request, seed: int, *, draws: bool) -> Settings:
    """The model's own settings, with what the command line says; what only a draw needs asks for one."""
    given = {name: getattr(request, name) for name in DRAWING if getattr(request, name) is not None}
    if request.greedy and given:
        raise UsageError(f"--greedy takes the most likely token: leave {written(next(iter(given)))} out")
    greedy = request.greedy or (own.greedy and not given and not draws)
    length, cached = request.max_new_tokens, request.cache
    return dataclasses.replace(own, greedy=greedy, seed=seed, max_new_tokens=length, use_cache=cached, **given)


def _stopping(defaults: Defaults, model: Model, stop_ids: str | None) -> Defaults:
    """The same with other tokens that end the text, where they were given."""
    if stop_ids is None:
        return defaults
    ids, words = parse_ids(stop_ids, "--stop-ids"), model.target_size
    for token in ids:
        if not 0 <= token < words:
            raise UsageError(f"--stop-ids: {token} is outside the vocabulary: IDs go from 0 to {words - 1}")
    rules = dataclasses.replace(defaults.rules, stop_ids=ids)
    return dataclasses.replace(defaults, rules=rules)


def _writer(model: Model, settings: Settings, defaults: Defaults, flags: Request) -> Writer:
    """Of an encoder–decoder, with what its encoder reads."""
    source: Ids = ()
    if model.has_decoder:
        source = _ids(flags, model, lambda text: model.encode(text, cut=flags.cut, pair=flags.text_pair))
    edits = edits_of(flags, model, model.program(1, 1)) if flags.edit else ()
    try:
        return Writer(model, settings, defaults.rules, source, flags.token_mask(), edits)
    except InputError as error:
        raise InputError(
            f"{model.name}: {error} (--model decoder, encoder-decoder, or a checkpoint of such)"
        ) from error


def _prompt(writer: Writer, flags: Flags) -> Ids:
    """The tokens that are written on from."""
    model = writer.model
    if not model.has_decoder:
        if flags.decoder_text is not None or flags.decoder_token_ids() is not None:
            model.encode_target()  # says that there is no second sentence
        if flags.text_pair is not None:
            raise UsageError(f"--text-pair: {model.name} writes one text on: leave it out")
        prompt, mask = _ids(flags, model, lambda text: writer.prompt(text, cut=flags.cut)), flags.token_mask()
        return writer.unpadded(prompt, mask) if flags.ids is not None or mask is not None else prompt
    ids = flags.decoder_token_ids()
    if ids is not None:
        return ids
    return read(model, writer.prompt(flags.decoder_text or "", cut=flags.cut), "the decoder's text").ids


def _ids(flags: Flags, model: Model, encode: Callable[[str], Encoding]) -> Ids:
    """The token IDs or the sentence that was given; else an example."""
    ids, text, words = flags.token_ids(), flags.sentence, model.vocabulary
    if ids is not None:
        return ids
    if text is None:
        if words is None:
            return tuple(range(min(EXAMPLE_IDS, model.config.vocab_size)))
        text = sample_sentence(words, model.name)
    return read(model, encode(text), "the text").ids


# Writing


def _write(writer: Writer, prompt: Ids, output: Output) -> None:
    """Every token as soon as it is there; what is there stays, however it ends."""
    told = Told(writer)
    try:
        emit((output.begin(),))
        for state in told.states(prompt):
            emit((output.token(state),))
    except KeyboardInterrupt:
        _close(output, told, "interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except SystemExit:
        _close(output, told, "terminated")
        raise
    _close(output, told, told.end)


def _close(output: Output, told: Told, end: str) -> None:
    emit((output.end(),))
    note(told.line(end))


@dataclass
class Told:
    """Facts of the closing note."""

    writer: Writer
    tokens: int = 0
    first: float = 0.0
    later: float = 0.0
    end: str = ""

    def states(self, prompt: Sequence[int]) -> Iterator[State]:
        """Every state whose candidate is written; none is computed only to end."""
        state = self.writer.begin(prompt)
        self.first = state.seconds
        end = state.finished
        while end is None:
            self.tokens += 1
            yield state
            end = self.writer.end((*state.ids, state.candidate), state.prompt)
            if end is None:
                state = self.writer.next(state)
                self.later += state.seconds
        self.end = end

    def line(self, end: str) -> str:
        """Tokens, how fast, memory of the cache, and why it ended."""
        count = f"{self.tokens:,} token" + "s" * (self.tokens != 1)
        rate = f", then {(self.tokens - 1) / self.later:.1f} tokens/s" if self.later else ""
        first = f"first after {self.first:.2f} s{rate}" if self.first else ""
        return " · ".join(filter(None, (count, first, self._memory(), end)))

    def _memory(self) -> str:
        writer = self.writer
        if not writer.settings.use_cache:
            return "no cache"
        most = f"{readable(writer.limit_bytes)} at {writer.model.config.max_length:,}"
        return f"cache {readable(writer.cache.bytes)} for {writer.cache.length:,} tokens ({most})"


class Output(Protocol):
    """A format: what is written before, for each token, and after."""

    def begin(self) -> str:
        """Before the first token."""

    def token(self, state: State) -> str:
        """For the token that comes after a state."""

    def end(self) -> str:
        """After the last token."""


class AsText:
    """The text alone."""

    def __init__(self, model: Model, prompt: Ids, *, with_prompt: bool) -> None:
        self._stream, self._with_prompt = TextStream(model, prompt), with_prompt
        self._ends_line = False

    def begin(self) -> str:
        """The prompt."""
        return self._seen(self._stream.prompt() if self._with_prompt else "")

    def token(self, state: State) -> str:
        """The text that the token adds."""
        return self._seen(self._stream.add(state.candidate))

    def end(self) -> str:
        """Text that was held back, and the end of the line where the text does not end with one."""
        rest = self._seen(self._stream.end())
        return rest if self._ends_line else rest + "\n"

    def _seen(self, text: str) -> str:
        if text:
            self._ends_line = text.endswith("\n")
        return text


class AsJson:
    """A JSON object on a line for every token."""

    def __init__(self, model: Model, prompt: Ids, *, with_prompt: bool) -> None:
        self._model, self._prompt = model, prompt if with_prompt else ()

    def begin(self) -> str:
        """The tokens of the prompt, which nobody chose."""
        return "".join(self._line(i, token, prompt=True) for i, token in enumerate(self._prompt))

    def token(self, state: State) -> str:
        """The token, how likely it was, the number that fell into its share, and the rules that acted."""
        candidate = state.of(state.candidate)
        chance = {"probability": candidate.probability, "model_probability": candidate.alone, "rank": candidate.rank}
        drawn = None if state.draw is None else {"r": state.draw.number, "from": state.draw.low, "to": state.draw.high}
        chosen = {**chance, "logit": candidate.logit, "draw": drawn, "rules": state.rules}
        return self._line(len(state.ids), candidate.token, **chosen)

    def end(self) -> str:
        """Nothing."""
        return ""

    def _line(self, position: int, token: int, **more: object) -> str:
        return json.dumps({"position": position, "id": token, "piece": self._model.target_word(token), **more}) + "\n"


_OUTPUTS: Mapping[str, type[AsText] | type[AsJson]] = {"text": AsText, "json": AsJson}
