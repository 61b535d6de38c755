"""Model families: one file each, named after its `model_type`, read when a model of the family is opened."""

from importlib import import_module

from tui_transformer.model.families.base import Family, Lengths, ModelConfig

FAMILIES = (
    "vanilla",
    "attention",
    "bert",
    "distilbert",
    "roberta",
    "bart",
    "marian",
    "t5",
    "gpt2",
    "gpt_neox",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
)
"""The families by `model_type`: the file of that name holds the family under the same name in capitals."""


def family_of(model_type: str) -> Family:
    """The family of a `model_type` that `FAMILIES` names."""
    family = getattr(import_module(f"{__name__}.{model_type}"), model_type.upper())
    assert isinstance(family, Family)  # noqa: S101 - a file that breaks the rule above
    return family


__all__ = ["FAMILIES", "Family", "Lengths", "ModelConfig", "family_of"]
