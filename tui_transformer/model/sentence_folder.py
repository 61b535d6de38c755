"""Folders of sentence-transformers: `modules.json`, and a folder of settings and weights for every module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import read_json, read_json_list
from tui_transformer.model.checks import shown
from tui_transformer.model.foreign import WEIGHTS, refuse_folder
from tui_transformer.model.sentence import KEY, MOST_MODULES, MOST_TOKENS, dense_prefix
from tui_transformer.model.tensors import Tensors, open_file

MODULES = "modules.json"
LARGEST = 1 << 20
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
        places: The folders of these.
        most_tokens: What the folder says of how many tokens a text may have; None for nothing.
    """

    folder: Path
    settings: Sequence[Mapping[str, Any]]
    places: Sequence[Path]
    most_tokens: object = None

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of `config.json` that say all this."""
        return {KEY: self.settings, MOST_TOKENS: self.most_tokens}

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
                by_name |= {f"{dense_prefix(number - 1)}.{name}": tensor for name, tensor in own.items()}
        return replace(tensors, by_name=by_name)


def sentence_modules(folder: Path) -> Modules | None:
    """The modules of a folder; None where it is no folder of sentence-transformers.

    Raises:
        InputError: A module that is not known, or a file that cannot be read.
    """
    path = folder / MODULES
    if not path.is_file():
        return None
    listed = read_json_list(path, LARGEST)
    if not 2 <= len(listed) <= MOST_MODULES:
        raise InputError(f"{path}: {len(listed)} modules, where the layers and a pooling are the least: not supported")
    modules = [_module(path, each) for each in listed]
    (first, layers), *others = modules
    if first != "Transformer":
        raise InputError(f"{path}: the first module is {first}, not Transformer: it is not supported")
    named = [layers / name for name in OF_THE_LAYERS]
    chosen = next((each for each in named if each.is_file()), named[0])
    texts = _optional(chosen)
    _check_texts(folder, chosen, texts)
    settings = [{**_settings(kind, place), "type": kind} for kind, place in others]
    return Modules(layers, settings, [place for _, place in others], texts.get(MOST_TOKENS))


def _module(path: Path, raw: object) -> tuple[str, Path]:
    """The type of a module, and its folder, which lies in that of the file."""
    kind, place = (raw.get("type"), raw.get("path")) if isinstance(raw, Mapping) else (None, None)
    known = LIBRARY.fullmatch(kind) if isinstance(kind, str) else None
    if known is None:
        raise InputError(f"{path}: the module {shown(kind)} is not of sentence-transformers: it is not supported")
    if not isinstance(place, str) or not (place == "" or PLACE.fullmatch(place)):
        raise InputError(f"{path}: {shown(place)} is not the name of a folder beside it")
    return known[2], path.parent / place


def _settings(kind: str, place: Path) -> dict[str, Any]:
    """The settings of a module; Normalize has none."""
    return read_json(place / "config.json", LARGEST) if kind in ("Pooling", "Dense") else {}


def _check_texts(folder: Path, path: Path, texts: Mapping[str, Any]) -> None:
    """Raise InputError where texts are changed before they are cut into tokens."""
    prompt = _optional(folder / OF_THE_WHOLE)
    if texts.get("do_lower_case", False) is not False:
        raise InputError(f"{path}: do_lower_case {shown(texts['do_lower_case'])} is not supported")
    if prompt.get("default_prompt_name") is not None:
        named = f"default_prompt_name {shown(prompt['default_prompt_name'])}"
        advice = "set it to null, and write the prompt in front of the text"
        raise InputError(f"{folder / OF_THE_WHOLE}: {named} is not supported: {advice}")


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path, LARGEST) if path.is_file() else {}
