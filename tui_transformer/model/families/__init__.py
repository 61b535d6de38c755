"""Model families: one file each. `FAMILIES` is the table by `model_type`."""

from collections.abc import Mapping

from tui_transformer.model.families.attention import ATTENTION
from tui_transformer.model.families.bart import BART
from tui_transformer.model.families.base import Family, Lengths, ModelConfig
from tui_transformer.model.families.bert import BERT
from tui_transformer.model.families.distilbert import DISTILBERT
from tui_transformer.model.families.gpt2 import GPT2
from tui_transformer.model.families.gpt_neox import GPT_NEOX
from tui_transformer.model.families.llama import LLAMA
from tui_transformer.model.families.marian import MARIAN
from tui_transformer.model.families.mistral import MISTRAL
from tui_transformer.model.families.qwen2 import QWEN2
from tui_transformer.model.families.qwen3 import QWEN3
from tui_transformer.model.families.roberta import ROBERTA
from tui_transformer.model.families.t5 import T5
from tui_transformer.model.families.vanilla import VANILLA

FAMILIES: Mapping[str, Family] = {
    family.model_type: family
    for family in (
        VANILLA,
        ATTENTION,
        BERT,
        DISTILBERT,
        ROBERTA,
        BART,
        MARIAN,
        T5,
        GPT2,
        GPT_NEOX,
        LLAMA,
        MISTRAL,
        QWEN2,
        QWEN3,
    )
}

__all__ = ["ATTENTION", "FAMILIES", "VANILLA", "Family", "Lengths", "ModelConfig"]
