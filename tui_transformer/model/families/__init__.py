"""Model families: one file each, named after its `model_type`, read when a model of the family is opened."""

from collections.abc import Mapping
from importlib import import_module

from tui_transformer.model.families.base import Family, ModelConfig

FAMILIES = (
    "vanilla",
    "attention",
    "bert",
    "distilbert",
    "roberta",
    "xlm-roberta",
    "electra",
    "albert",
    "mpnet",
    "modernbert",
    "deberta-v2",
    "bart",
    "marian",
    "mbart",
    "m2m_100",
    "pegasus",
    "t5",
    "mt5",
    "gpt2",
    "gpt_neox",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "olmo2",
    "olmo3",
    "smollm3",
    "phi3",
    "granite",
    "starcoder2",
    "phi",
    "stablelm",
    "cohere",
    "falcon",
    "bloom",
    "opt",
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "gpt_oss",
    "olmoe",
    "gpt_neo",
    "ministral",
    "seed_oss",
    "cohere2",
    "exaone4",
    "ernie4_5",
    "helium",
    "arcee",
    "nemotron",
    "glm",
    "glm4",
    "internlm3",
    "cwm",
    "umt5",
    "gpt_bigcode",
    "gptj",
    "nomic_bert",
)
"""The families by `model_type`: the file of that name (_ for -) holds the family under the same name in capitals."""

ALIASES: Mapping[str, str] = {"camembert": "xlm-roberta", "data2vec-text": "xlm-roberta"}
"""Other values of `model_type` → the family that computes the same, with the same settings and defaults."""


def family_of(model_type: str) -> Family:
    """The family of a `model_type` that `FAMILIES` or `ALIASES` names."""
    name = ALIASES.get(model_type, model_type).replace("-", "_")
    family = getattr(import_module(f"{__name__}.{name}"), name.upper())
    assert isinstance(family, Family)  # noqa: S101 - a file that breaks the rule above
    return family


__all__ = ["ALIASES", "FAMILIES", "Family", "Lengths", "ModelConfig", "family_of"]
