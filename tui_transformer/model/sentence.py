"""Sentence vectors: what follows the layers in a folder of sentence-transformers (Reimers & Gurevych 2019)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import read_json, read_json_list
from tui_transformer.model.checks import a_size, shown, truth
from tui_transformer.model.description import SentenceHead, Transform
from tui_transformer.model.other_files import WEIGHTS, refuse_folder
from tui_transformer.model.tensors import Tensors, open_file
from tui_transformer.model.weight_table import Part, WeightTable
from tui_transformer.records import dataclass, replace

KEY = "sentence_modules"
"""Of `config.json`, as this program writes it: the modules behind the layers, each with its settings."""

MOST_TOKENS = "max_seq_length"
"""Of `config.json`, likewise: how many tokens a text may have; null for what the layers read."""

MOST_MODULES = 16

POOLS: Mapping[str, str] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean over √n",
    "pooling_mode_weightedmean_tokens": "weighted mean",
    "pooling_mode_lasttoken": "last",
}
"""Settings of the module Pooling → a key of `SHARES`, in the order in which vectors stand side by side."""

POOL_WORDS: Mapping[str, str] = dict(
    zip(("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"), POOLS.values(), strict=True)
)
"""The same as words of `pooling_mode`."""

TORCH: Mapping[str, str] = {"Identity": "", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu"}
"""Classes of `torch.nn.modules` that the module Dense names → a key of `ACTIVATIONS`."""


def read_sentence(raw: Mapping[str, Any]) -> SentenceHead | None:
    """The head that makes the sentence vector, of a `config.json` with the modules in it; None without them.

    Raises:
        UsageError: A module, or a setting of one, that is not computed; the message names it.
    """
    modules = raw.get(KEY)
    if modules is None:
        return None
    if not isinstance(modules, Sequence) or isinstance(modules, str) or not 1 <= len(modules) <= MOST_MODULES:
        raise UsageError(f"{KEY} {shown(modules)} is not a list of modules")
    first, *others = modules
    if not isinstance(first, Mapping) or first.get("type") != "Pooling":
        raise UsageError(f"the module after the layers is {_type(first)}, not Pooling: it is not supported")
    most = raw.get(MOST_TOKENS)
    if most is not None:
        a_size(MOST_TOKENS, most)
    return SentenceHead(_pools(first), tuple(_behind(each) for each in others), most)


def _type(module: object) -> str:
    return shown(module.get("type")) if isinstance(module, Mapping) else shown(module)


def _pools(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """How the tokens become one vector; by the mean where nothing is said."""
    if settings.get("include_prompt", True) is not True:
        raise UsageError("include_prompt false of the module Pooling is not supported: a prompt takes part")
    words = settings.get("pooling_mode")
    if words is not None:
        if not isinstance(words, str) or words not in POOL_WORDS:
            raise UsageError(f"pooling_mode {shown(words)} is not supported: {', '.join(POOL_WORDS)} are")
        return (POOL_WORDS[words],)
    asked = {key: value for key, value in settings.items() if key.startswith("pooling_mode_")}
    for key, value in asked.items():
        truth(key, value)
        if value and key not in POOLS:
            raise UsageError(f"{shown(key)} of the module Pooling is not supported: {', '.join(POOLS)} are")
    default = {"pooling_mode_mean_tokens": True}
    chosen = tuple(pool for key, pool in POOLS.items() if (default | asked).get(key))
    if not chosen:
        raise UsageError("the module Pooling chooses no way to pool")
    return chosen


def _behind(module: object) -> Transform | None:
    """A module behind the pooling: a matrix, or None where the vector is brought to length 1."""
    settings: Mapping[str, Any] = module if isinstance(module, Mapping) else {}
    if settings.get("type") == "Normalize":
        return None
    if settings.get("type") != "Dense":
        raise UsageError(f"the module {_type(module)} is not supported: Pooling, Dense, Normalize are")
    a_size("out_features of the module Dense", settings.get("out_features"))
    bias = settings.get("bias", True)
    truth("bias of the module Dense", bias)
    name = settings.get("activation_function", "torch.nn.modules.activation.Tanh")
    last = name.rpartition(".")[2] if isinstance(name, str) and name.startswith("torch.nn.") else ""
    if last not in TORCH:
        raise UsageError(
            f"activation_function {shown(name)} of the module Dense is not supported: {', '.join(TORCH)} are"
        )
    return Transform(settings["out_features"], TORCH[last], bias=bias)


def written_modules(head: SentenceHead) -> dict[str, Any]:
    """The keys of `config.json` that give the head again."""
    modules: list[dict[str, Any]] = [{"type": "Pooling", **{key: pool in head.pools for key, pool in POOLS.items()}}]
    for each in head.then:
        if each is None:
            modules.append({"type": "Normalize"})
            continue
        activation = f"torch.nn.{next(name for name, known in TORCH.items() if known == each.activation)}"
        settings = {"out_features": each.width, "bias": each.bias, "activation_function": activation}
        modules.append({"type": "Dense", **settings})
    return {KEY: modules, MOST_TOKENS: head.most_tokens}


# The weights


DENSE = f"{KEY}.{{}}"
"""In front of the tensors of a module, by its place behind the pooling."""


def with_sentence(weights: WeightTable, head: SentenceHead) -> WeightTable:
    """The table of a family's weights, with those of the modules."""
    places = [place for place, module in enumerate(head.then) if module is not None]
    parts = {"pooled.{}.dense": Part(f"{DENSE}.linear", turned=True)}
    if places:
        parts["pooled.dense"] = Part(f"{DENSE.format(places[0])}.linear", turned=True)
    return replace(weights, parts={**weights.parts, **parts})


MODULES = "modules.json"
LARGEST_FILE = 1 << 20
LIBRARY = re.compile(r"sentence_transformers\.(\w+\.)*(\w+)")
PLACE = re.compile(r"[\w-][\w.-]*", re.ASCII)
"""The name of a module's folder."""

OF_THE_LAYERS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Settings of the module Transformer: the first of these files that is there."""

OF_THE_WHOLE = "config_sentence_transformers.json"


@dataclass(frozen=True)
class Modules:
    """The modules of a folder.

    Attributes:
        folder: Where the layers are: configuration, weights and tokenizer.
        settings: Of the modules behind them, each with its type.
        most_tokens: What the folder says of how many tokens a text may have; None for nothing.
    """

    folder: Path
    settings: Sequence[Mapping[str, Any]]
    places: Sequence[Path]
    most_tokens: object = None

    def added_to(self, tensors: Tensors) -> Tensors:
        """The tensors of the layers, with those of the modules under names of their own.

        Raises:
            InputError: A module's file is missing or damaged.
        """
        by_name = dict(tensors.by_name)
        for number, (settings, place) in enumerate(zip(self.settings, self.places, strict=True)):
            if settings["type"] == "Dense":
                if not (place / WEIGHTS).exists():
                    refuse_folder(place)
                own = open_file(place / WEIGHTS).by_name
                by_name |= {f"{DENSE.format(number - 1)}.{name}": tensor for name, tensor in own.items()}
        return replace(tensors, by_name=by_name)


def sentence_modules(folder: Path) -> Modules | None:
    """The modules of a folder; None where it is no folder of sentence-transformers.

    Raises:
        InputError: A module that is not known, or a file that cannot be read.
    """
    path = folder / MODULES
    if not path.is_file():
        return None
    listed = read_json_list(path, LARGEST_FILE)
    if not 2 <= len(listed) <= MOST_MODULES:
        raise InputError(f"{path}: {len(listed)} modules, where the layers and a pooling are the least: not supported")
    modules = [_named(path, each) for each in listed]
    (first, layers), *others = modules
    if first != "Transformer":
        raise InputError(f"{path}: the first module is {first}, not Transformer: it is not supported")
    named = [layers / name for name in OF_THE_LAYERS]
    chosen = next((each for each in named if each.is_file()), named[0])
    texts, whole = (read_json(path, LARGEST_FILE) if path.is_file() else {} for path in (chosen, folder / OF_THE_WHOLE))
    if texts.get("do_lower_case", False) is not False:  # texts would be changed before they are cut into tokens
        raise InputError(f"{chosen}: do_lower_case {shown(texts['do_lower_case'])} is not supported")
    if whole.get("default_prompt_name") is not None:
        prompt = f"default_prompt_name {shown(whole['default_prompt_name'])}"
        advice = "set it to null, and write the prompt in front of the text"
        raise InputError(f"{folder / OF_THE_WHOLE}: {prompt} is not supported: {advice}")
    settings = [
        {**(read_json(place / "config.json", LARGEST_FILE) if kind in ("Pooling", "Dense") else {}), "type": kind}
        for kind, place in others
    ]
    return Modules(layers, settings, [place for _, place in others], texts.get(MOST_TOKENS))


def _named(path: Path, raw: object) -> tuple[str, Path]:
    """The type of a module, and its folder, which lies in that of the file."""
    kind, place = (raw.get("type"), raw.get("path")) if isinstance(raw, Mapping) else (None, None)
    known = LIBRARY.fullmatch(kind) if isinstance(kind, str) else None
    if known is None:
        raise InputError(f"{path}: the module {shown(kind)} is not of sentence-transformers: it is not supported")
    if not isinstance(place, str) or not (place == "" or PLACE.fullmatch(place)):
        raise InputError(f"{path}: {shown(place)} is not the name of a folder beside it")
    return known[2], path.parent / place
