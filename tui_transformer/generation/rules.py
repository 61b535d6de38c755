"""Rules of generation: tokens that a model's folder forces, forbids or makes less likely, and where they are read.

They act on the logits before temperature, in the order of `RULES`. Defaults come from `generation_config.json`, else
`config.json`, else the model's family. As in the library transformers, `generation_config.json` stands alone where it
exists; only token IDs that it leaves out are those of `config.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import read_json
from tui_transformer.generation.sampling import Settings
from tui_transformer.model import Model
from tui_transformer.model.checks import Check, checked, is_number, is_whole, shown, whole_number
from tui_transformer.records import dataclass

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Rules:
    """Rules under the names that `generation_config.json` has for them; what each does is said where it acts.

    Each of the stop IDs (`eos_token_id`) ends the text. The decoder of an encoder–decoder begins with
    `decoder_start_token_id`, where that is not the configuration's.
    """

    stop_ids: Ids = ()
    decoder_start_token_id: int | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: Ids = ()
    bad_words_ids: tuple[Ids, ...] = ()
    suppress_tokens: Ids = ()
    begin_suppress_tokens: Ids = ()
    min_length: int = 0
    min_new_tokens: int = 0
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0


@dataclass(frozen=True)
class Moment:
    """The state in which the next token is chosen: a sequence that began with a prompt, of at most `limit` tokens."""

    ids: Ids
    prompt: int
    limit: int


Rule = Callable[[Rules, Moment, Host], Host | None]
"""Gives other logits, or None where the rule has nothing to say."""


def apply(rules: Rules, moment: Moment, logits: Host) -> tuple[Host, tuple[str, ...]]:
    """The logits under all rules, and the names of those that changed them; InputError where they leave no token."""
    acted: list[str] = []
    for name, rule in RULES.items():
        changed = rule(rules, moment, logits)
        if changed is not None:
            logits, acted = changed, [*acted, name]
    if acted and not np.isfinite(logits.max()):
        raise InputError(f"no token is left to be written: {', '.join(acted)} of the model's folder forbid all")
    return logits, tuple(acted)


def repetition_penalty(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """Positive logits ÷ θ, negative ones · θ, for tokens that are there (Keskar et al. 2019, §4.1); 1 leaves them."""
    factor = rules.repetition_penalty
    if factor == 1.0:
        return None
    there = np.unique(np.asarray(moment.ids))
    changed = logits.copy()
    changed[there] = np.where(logits[there] < 0, logits[there] * factor, logits[there] / factor)
    return changed


def no_repeat_ngram_size(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """A token that followed the last n − 1 tokens earlier does not follow them again (Paulus et al. 2017, §2.5).

    0 lets all.
    """
    size, ids = rules.no_repeat_ngram_size, moment.ids
    if not 0 < size <= len(ids):
        return None
    last = ids[len(ids) - size + 1 :]
    starts = range(len(ids) - size + 1)
    return forbidden(logits, {ids[i + size - 1] for i in starts if ids[i : i + size - 1] == last})


def bad_words_ids(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """Sequences that are not written: the last token of one whose other tokens are the last ones.

    A stop token alone is none.
    """
    words = (word for word in rules.bad_words_ids if len(word) > 1 or word[0] not in rules.stop_ids)
    ends = (word[-1] for word in words if moment.ids[max(0, len(moment.ids) - len(word) + 1) :] == word[:-1])
    return forbidden(logits, set(ends))


def min_length(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """No stop token while the sequence is shorter, the prompt included."""
    return forbidden(logits, rules.stop_ids) if len(moment.ids) < rules.min_length else None


def min_new_tokens(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """No stop token before so many new ones."""
    return forbidden(logits, rules.stop_ids) if len(moment.ids) - moment.prompt < rules.min_new_tokens else None


def forced_bos_token_id(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """The first token after a single start token."""
    token = rules.forced_bos_token_id
    return forced(logits, (token,)) if token is not None and len(moment.ids) == 1 else None


def forced_eos_token_id(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """The last token where the length limit is reached."""
    tokens = rules.forced_eos_token_id
    return forced(logits, tokens) if tokens and len(moment.ids) == moment.limit - 1 else None


def suppress_tokens(rules: Rules, _: Moment, logits: Host) -> Host | None:
    """Tokens that are never written."""
    return forbidden(logits, rules.suppress_tokens)


def begin_suppress_tokens(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """Tokens that are not written first; after a forced first token, not second."""
    first = moment.prompt + (moment.prompt == 1 and rules.forced_bos_token_id is not None)
    return forbidden(logits, rules.begin_suppress_tokens) if len(moment.ids) == first else None


def forbidden(logits: Host, ids: Collection[int]) -> Host | None:
    """The logits with −∞ at these tokens; None where there are none of them."""
    words = [token for token in ids if token < logits.size]
    if not words:
        return None
    changed = logits.copy()
    changed[words] = -np.inf
    return changed


def forced(logits: Host, ids: Ids) -> Host:
    """0 at these tokens and −∞ everywhere else."""
    changed = np.full_like(logits, -np.inf)
    changed[list(ids)] = 0.0
    return changed


RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        repetition_penalty, no_repeat_ngram_size, bad_words_ids, min_length, min_new_tokens, forced_bos_token_id,
        forced_eos_token_id, suppress_tokens, begin_suppress_tokens,
    )
}  # fmt: skip
"""In the order in which they act, which is that of the library transformers."""


FILES = ("generation_config.json", "config.json")
LARGEST = 1 << 20
STOP, START = "eos_token_id", "decoder_start_token_id"

NOT_DONE: Mapping[str, tuple[Any, ...]] = {
    "num_beams": (1,),
    "num_beam_groups": (1,),
    "constraints": (),
    "force_words_ids": (),
    "forced_decoder_ids": ([],),
    "sequence_bias": (),
    "guidance_scale": (1,),
    "penalty_alpha": (0,),
    "encoder_repetition_penalty": (1,),
    "encoder_no_repeat_ngram_size": (0,),
    "exponential_decay_length_penalty": (),
    "min_p": (0,),
    "top_h": (),
    "typical_p": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "stop_strings": ([],),
    "watermarking_config": (),
    "dola_layers": (),
}
"""Settings that would change the text and are not done here → the values beside null that change nothing."""


@dataclass(frozen=True)
class Defaults:
    """How a model is meant to write: what is forced and forbidden, and how tokens are chosen.

    Greedily, or with temperature, top-k and top-p where the file has `do_sample`. The note is one line on what the file
    says and is not done, "" where there is nothing.
    """

    rules: Rules
    settings: Settings
    note: str = ""


def defaults_of(model: Model) -> Defaults:
    """Defaults from the model's folder; of a built-in model, the end that its vocabulary has.

    InputError where a file is not JSON, or has a value that cannot be.
    """
    folder = model.folder
    paths = [] if folder is None else [folder / name for name in FILES]
    contents = {path: read_json(path, LARGEST) for path in paths if path.exists()}
    end = None if model.target_vocabulary is None else model.target_vocabulary.end_id
    stop = () if end is None else (end,)
    if not contents:  # a built-in model, or a GGUF file
        return Defaults(Rules(stop), Settings(greedy=True))
    path, raw = next(iter(contents.items()))
    family, pad = model.family.model_type, model.config.pad_id
    given: dict[str, Any] = {STOP: list(stop) or _STOPS.get(family)}
    if path.name == FILES[1]:  # the other says all of its own rules
        if _FORCED.get(family, model.target_size) < model.target_size:
            given["forced_eos_token_id"] = _FORCED[family]
        if family == "marian" and pad is not None:
            given["bad_words_ids"] = [[pad]]
    given |= {key: value for key, value in raw.items() if key in _READ}
    for source in reversed(contents.values()):  # the file that counts last
        given |= {key: source.get(key) for key in (STOP, START) if key in source}
    try:
        read = {key: _READ[key](key, value) for key, value in given.items() if value is not None}
        rules = Rules(read.pop(STOP, ()), **read)
        drawn = {key: raw[key] for key in ("temperature", "top_k", "top_p") if raw.get(key) is not None}
        settings = Settings(**drawn) if raw.get("do_sample") else Settings(greedy=True)
    except UsageError as error:
        raise InputError(f"{path}: {error}") from error
    forced = {
        START: rules.decoder_start_token_id,
        "forced_bos_token_id": rules.forced_bos_token_id,
        "forced_eos_token_id": max(rules.forced_eos_token_id, default=0),
    }
    for key, token in forced.items():
        if token is not None and token >= model.target_size:
            raise InputError(f"{path}: {key} {token} is outside the vocabulary of {model.target_size:,}")
    ignored = {key: raw[key] for key, same in NOT_DONE.items() if raw.get(key) is not None and raw[key] not in same}
    asked = ", ".join(f"{key} {shown(value)}" for key, value in ignored.items())
    note = f"{path.name} asks for {asked}, which is not done here: the text can be another one" if ignored else ""
    return Defaults(rules, settings, note)


_STOPS = {"bart": 2, "marian": 0, "t5": 1, "gpt2": 50256, "gpt_neox": 2, "llama": 2, "mistral": 2}
_FORCED = {"bart": 2, "marian": 0}
"""Tokens of a family where no file says anything, as far as the vocabulary has them."""

# What is read


def _one(check: Check) -> Callable[[str, object], Any]:
    """Reads a value that passes a check."""

    def read(key: str, value: object) -> object:
        check(key, value)
        return value

    return read


_token = _one(checked(is_whole, "is not a token ID, which is a whole number from 0"))


def _tokens(key: str, value: object) -> Ids:
    return tuple(_token(key, token) for token in (value if isinstance(value, list) else [value]))


def _sequences(key: str, value: object) -> tuple[Ids, ...]:
    if not isinstance(value, list) or not all(isinstance(word, list) and word for word in value):
        raise UsageError(f"{key} {shown(value)} is not a list of lists of token IDs")
    return tuple(_tokens(key, word) for word in value)


_READ: Mapping[str, Callable[[str, object], Any]] = {
    STOP: _tokens,
    **dict.fromkeys((START, "forced_bos_token_id"), _token),
    **dict.fromkeys(("forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"), _tokens),
    **dict.fromkeys(("min_length", "min_new_tokens", "no_repeat_ngram_size"), _one(whole_number)),
    "bad_words_ids": _sequences,
    "repetition_penalty": _one(checked(lambda value: is_number(value, below=1e6), "is not a number above 0")),
}
"""Keys of the files, which are called as the rules that they set but for the stop, and how their value is read."""
