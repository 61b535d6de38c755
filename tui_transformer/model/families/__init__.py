"""Model families: each a configuration, read when a model of the family is opened."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from tui_transformer.model.base_config import BaseConfig
from tui_transformer.records import dataclass

Kind = TypeVar("Kind", bound=BaseConfig)

MODULES: Mapping[str, str] = {
    "config": "vanilla attention",
    "families.bert": "bert distilbert roberta xlm-roberta electra mpnet",
    "families.deberta": "albert deberta-v2",
    "families.modernbert": "modernbert nomic_bert",
    "families.bart": "bart marian mbart m2m_100 pegasus",
    "families.t5": "t5 mt5 umt5",
    "families.gpt2": "gpt2 gpt_bigcode gpt_neo gptj opt",
    "families.gpt_neox": "gpt_neox stablelm bloom falcon",
    "families.llama": "llama arcee internlm3 granite seed_oss nemotron mistral ministral starcoder2 cwm smollm3 phi "
    "phi3 cohere cohere2 helium ernie4_5 glm glm4",
    "families.qwen": "qwen2 qwen3 qwen2_moe qwen3_moe mixtral gpt_oss",
    "families.gemma": "gemma gemma2 gemma3_text olmo2 olmo3 olmoe exaone4",
}
"""Modules of `tui_transformer.model`, and the `model_type` of every family in them."""

FAMILIES: Mapping[str, str] = {name: module for module, names in MODULES.items() for name in names.split()}
"""The families by `model_type`: where the class is that has it."""

ALIASES: Mapping[str, str] = {"camembert": "xlm-roberta", "data2vec-text": "xlm-roberta"}
"""Other values of `model_type` → the family that computes the same, with the same settings and defaults."""


def family_of(model_type: str) -> type[BaseConfig]:
    """The family of a `model_type` that `FAMILIES` or `ALIASES` names."""
    own = ALIASES.get(model_type, model_type)
    classes = vars(import_module(f"tui_transformer.model.{FAMILIES[own]}")).values()
    families = (each for each in classes if isinstance(each, type) and issubclass(each, BaseConfig))
    return next(family for family in families if vars(family).get("model_type") == own)


def family(
    name: str, base: type[Kind], model_type: str, defaults: Mapping[str, Any] | None = None, /, **said: Any
) -> type[Kind]:
    """The configuration of a family that differs from another in defaults and class attributes alone."""

    def reduced(config: BaseConfig) -> tuple[Any, ...]:
        return _again, (config.model_type, vars(config))  # such a class has no name in a module

    attributes = {"model_type": model_type, "defaults": defaults or {}, "__reduce__": reduced, **said}
    return dataclass(frozen=True)(type(name, (base,), attributes))


def _again(model_type: str, values: Mapping[str, Any]) -> BaseConfig:
    return family_of(model_type)(**values)
