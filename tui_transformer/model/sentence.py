"""Sentence vectors: what follows the layers in a folder of sentence-transformers (Reimers & Gurevych 2019)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown, size_up_to, truth
from tui_transformer.model.description import Dense, SentenceHead
from tui_transformer.model.weight_table import Part, WeightTable

KEY = "sentence_modules"
"""Of `config.json`, as this program writes it: the modules behind the layers, each with its settings."""

MOST_TOKENS = "max_seq_length"
"""Of `config.json`, likewise: how many tokens a text may have; null for what the layers read."""

MOST_MODULES, LARGEST = 16, 1 << 24

POOLS: Mapping[str, str] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean over √n",
    "pooling_mode_weightedmean_tokens": "weighted mean",
    "pooling_mode_lasttoken": "last",
}
"""Settings of the module Pooling → a key of `SHARES`, in the order in which vectors stand side by side."""

POOL_WORDS: Mapping[str, str] = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean over √n",
    "weightedmean": "weighted mean",
    "lasttoken": "last",
}
"""The same as words of `pooling_mode`."""

TORCH: Mapping[str, str] = {
    "Identity": "",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
}
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
        size_up_to(LARGEST)(MOST_TOKENS, most)
    return SentenceHead(_pools(first), tuple(_module(each) for each in others), most)


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


def _dense(settings: Mapping[str, Any]) -> Dense:
    size_up_to(LARGEST)("out_features of the module Dense", settings.get("out_features"))
    bias = settings.get("bias", True)
    truth("bias of the module Dense", bias)
    name = settings.get("activation_function", "torch.nn.modules.activation.Tanh")
    last = name.rpartition(".")[2] if isinstance(name, str) and name.startswith("torch.nn.") else ""
    if last not in TORCH:
        raise UsageError(
            f"activation_function {shown(name)} of the module Dense is not supported: {', '.join(TORCH)} are"
        )
    return Dense(settings["out_features"], TORCH[last], bias)


def _normalize(settings: Mapping[str, Any]) -> None:
    del settings


MODULES: Mapping[str, Callable[[Mapping[str, Any]], Dense | None]] = {"Dense": _dense, "Normalize": _normalize}
"""The modules that may follow the pooling."""


def _module(module: object) -> Dense | None:
    if not isinstance(module, Mapping) or module.get("type") not in MODULES:
        raise UsageError(f"the module {_type(module)} is not supported: Pooling, {', '.join(MODULES)} are")
    return MODULES[module["type"]](module)


def written_modules(head: SentenceHead) -> dict[str, Any]:
    """The keys of `config.json` that give the head again."""
    pooling = {"type": "Pooling", **{key: pool in head.pools for key, pool in POOLS.items()}}
    return {KEY: [pooling, *(_written(each) for each in head.then)], MOST_TOKENS: head.most_tokens}


def _written(module: Dense | None) -> dict[str, Any]:
    if module is None:
        return {"type": "Normalize"}
    activation = next(name for name, known in TORCH.items() if known == module.activation)
    settings = {"out_features": module.width, "bias": module.bias, "activation_function": f"torch.nn.{activation}"}
    return {"type": "Dense", **settings}


# The weights


def dense_prefix(place: int | str) -> str:
    """In front of the tensors of a module, by its place behind the pooling."""
    return f"sentence_modules.{place}"


def with_sentence(weights: WeightTable, head: SentenceHead) -> WeightTable:
    """The table of a family's weights, with those of the modules."""
    places = [place for place, module in enumerate(head.then) if module is not None]
    parts = {"pooled.{}.dense": Part(f"{dense_prefix('{}')}.linear", turned=True)}
    if places:
        parts["pooled.dense"] = Part(f"{dense_prefix(places[0])}.linear", turned=True)
    return replace(weights, parts={**weights.parts, **parts})
