"""`generate`: a text is written on, one token after another, on standard output."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import typer

from tui_transformer.cli.options import Featured, Flags, parse_ids
from tui_transformer.cli.output import emit, note
from tui_transformer.cli.session import edits_of, loaded, read
from tui_transformer.cli.terminal import INTERRUPTED, choose_threads
from tui_transformer.cli.typer_layer import flag, option, option_name
from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import readable
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.generation.rules import Defaults, Ids
    from tui_transformer.generation.sampling import Settings
    from tui_transformer.generation.writing import State, Writer
    from tui_transformer.model import Model
    from tui_transformer.text.encoding import Encoding

DRAWING = ("temperature", "top_k", "top_p")


@dataclass(frozen=True, kw_only=True)
class Generate(Featured):
    """Write a text on, token by token; --text is the prompt, or what an encoder reads.

    Where nothing is said, tokens are taken as the model's generation_config.json says, else the most likely one.
    A newline is added to a text that does not end with one. Without --model `story` writes; with a size or --vocab, a
    decoder of random weights.

    Example: tui-transformer generate --text "Once there was" --temperature 0.8
    """

    max_new_tokens: int = option(40, "At most so many tokens.")
    greedy: bool = flag("Always the most likely token.")
    temperature: float | None = option(None, "Logits are divided by it; 0 is --greedy.")
    top_k: int | None = option(None, "Only so many of the most likely tokens.")
    top_p: float | None = option(None, "Only the most likely tokens that make up this share.")
    sample_seed: int | None = option(None, "Seed of the draws; by default that of --seed, else 0.")
    stop_ids: str | None = option(
        None,
        "Token IDs that end the text, instead of the model's; may be given again.",
        several=True,
        metavar="2,13",
    )
    cache: bool = flag("Keep keys and values, or compute all again.", default=True)
    with_prompt: bool = flag("Write the prompt as well.")
    format: Literal["text", "json"] = option("text", "json: an object a line.")

    def run(self) -> None:
        choose_threads()
        import numpy.random  # noqa: F401 - its import loses an interrupt: do it before anything is written

        from tui_transformer.generation.rules import defaults_of
        from tui_transformer.model.loading import built_in_name

        framed = [name for name in ("--item", "--bracket", "--pad-to") if name in self.given()]
        if framed:
            raise UsageError(f"{framed[0]}: a prompt is read as it is: leave it out")
        seed = self.seed if self.sample_seed is None else self.sample_seed
        request = dataclasses.replace(self, model=self.model or usual(self))
        read = built_in_name(request.model or "") is None
        model = self.featured(loaded((dataclasses.replace(request, seed=None) if read else request).options()))
        defaults = defaults_of(model)
        draws = self.sample_seed is not None or (read and seed is not None)
        writer = self._writer(model, defaults, self._settings(defaults.settings, seed or 0, draws=draws))
        prompt = self._prompt(writer)
        if defaults.note:
            note(defaults.note)
        output = AsText if self.format == "text" else AsJson
        _write(writer, prompt, output(model, prompt, with_prompt=self.with_prompt))

    def _settings(self, own: Settings, seed: int, *, draws: bool) -> Settings:
        """The model's own settings, with what the command line says; what only a draw needs asks for one."""
        given = {name: getattr(self, name) for name in DRAWING if getattr(self, name) is not None}
        if self.greedy and given:
            raise UsageError(f"--greedy takes the most likely token: leave {option_name(next(iter(given)))} out")
        greedy = self.greedy or (own.greedy and not given and not draws)
        length, cached = self.max_new_tokens, self.cache
        return dataclasses.replace(own, greedy=greedy, seed=seed, max_new_tokens=length, use_cache=cached, **given)

    def _writer(self, model: Model, defaults: Defaults, settings: Settings) -> Writer:
        """Of an encoder–decoder, with what its encoder reads; with other tokens that end the text, where given."""
        from tui_transformer.generation.cache import writes
        from tui_transformer.generation.writing import Writer

        rules = defaults.rules
        if self.stop_ids is not None:
            ids, words = parse_ids(self.stop_ids, "--stop-ids"), model.target_size
            for token in ids:
                if not 0 <= token < words:
                    raise UsageError(f"--stop-ids: {token} is outside the vocabulary: IDs go from 0 to {words - 1}")
            rules = dataclasses.replace(rules, stop_ids=ids)
        source: Ids = ()
        if model.has_decoder:
            source = self._ids(model, lambda text: model.encode(text, cut=self.cut, pair=self.text_pair))
        edits = edits_of(self, model, model.program(1, 1)) if self.edit else ()
        try:
            return Writer(model, settings, rules, source, self.token_mask(), edits)
        except InputError as error:
            if writes(model.program(1, 1)):
                raise
            raise InputError(
                f"{model.name}: {error} (--model decoder, encoder-decoder, or a checkpoint of such)"
            ) from error

    def _prompt(self, writer: Writer) -> Ids:
        model = writer.model
        if not model.has_decoder:
            if self.decoder_text is not None or self.decoder_token_ids() is not None:
                model.encode_target()  # says that there is no second sentence
            if self.text_pair is not None:
                raise UsageError(f"--text-pair: {model.name} writes one text on: leave it out")
            prompt, mask = self._ids(model, lambda text: writer.prompt(text, cut=self.cut)), self.token_mask()
            return writer.unpadded(prompt, mask) if self.ids is not None or mask is not None else prompt
        ids = self.decoder_token_ids()
        if ids is not None:
            return ids
        return read(model, writer.prompt(self.decoder_text or "", cut=self.cut), "the decoder's text").ids

    def _ids(self, model: Model, encode: Callable[[str], Encoding]) -> Ids:
        """The token IDs or the sentence that was given; else an example."""
        from tui_transformer.session.open_session import EXAMPLE_IDS
        from tui_transformer.text.known_words import sample_sentence

        ids, text, words = self.token_ids(), self.sentence, model.vocabulary
        if ids is not None:
            return ids
        if text is None:
            if words is None:
                return tuple(range(min(EXAMPLE_IDS, model.config.vocab_size)))
            text = sample_sentence(words, model.name)
        return read(model, encode(text), "the text").ids


def usual(flags: Flags) -> str:
    """The model that writes where none is named: the trained one, or a random one of the sizes that were given."""
    return "story" if not flags.options().sizes and flags.vocab is None else "decoder"


# Writing


def _write(writer: Writer, prompt: Ids, output: AsText | AsJson) -> None:
    """Every token as soon as it is there; what is there stays, however it ends."""
    tokens, seconds = 0, list[float]()

    def close(end: str) -> None:
        emit((output.end(),))
        note(_told(writer, tokens, seconds, end))

    try:
        emit((output.begin(),))
        state = writer.begin(prompt)
        seconds.append(state.seconds)
        end = state.finished
        while end is None:
            tokens += 1
            emit((output.token(state),))
            end = writer.end((*state.ids, state.candidate), state.prompt)
            if end is None:  # none is computed only to end
                state = writer.next(state)
                seconds.append(state.seconds)
    except SystemExit as error:  # of a signal
        close("interrupted" if error.code == INTERRUPTED else "terminated")
        raise typer.Exit(int(error.code or 0)) from None
    close(end)


def _told(writer: Writer, tokens: int, seconds: Sequence[float], end: str) -> str:
    """Tokens, how fast, memory of the cache, and why it ended."""
    count = f"{tokens:,} token" + "s" * (tokens != 1)
    later = sum(seconds[1:])
    rate = f", then {(tokens - 1) / later:.1f} tokens/s" if later else ""
    first = f"first after {seconds[0]:.2f} s{rate}" if seconds and seconds[0] else ""
    why = writer.why_unkept(writer.cache.length) if writer.settings.use_cache else ""
    memory = f"no cache: {why}" if why else "no cache"
    if writer.settings.use_cache and not why:
        most = f"{readable(writer.limit_bytes)} at {writer.model.config.max_length:,}"
        memory = f"cache {readable(writer.cache.bytes)} for {writer.cache.length:,} tokens ({most})"
    return " · ".join(filter(None, (count, first, memory, end)))


class AsText:
    """The text alone."""

    def __init__(self, model: Model, prompt: Ids, *, with_prompt: bool) -> None:
        from tui_transformer.generation.text import TextStream

        self._stream, self._with_prompt = TextStream(model, prompt), with_prompt
        self._ends_line = False

    def begin(self) -> str:
        return self._seen(self._stream.prompt() if self._with_prompt else "")

    def token(self, state: State) -> str:
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
        return ""

    def _line(self, position: int, token: int, **more: object) -> str:
        return json.dumps({"position": position, "id": token, "piece": self._model.target_word(token), **more}) + "\n"
