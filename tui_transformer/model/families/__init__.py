"""Model families: each a configuration, read when a model of the family is opened."""

from collections.abc import Mapping
from importlib import import_module

from tui_transformer.model.base_config import BaseConfig

FAMILIES: Mapping[str, str] = {
    "vanilla": "config.Config",
    "attention": "config.AttentionConfig",
    "bert": "families.bert.BertConfig",
    "distilbert": "families.bert.DistilBertConfig",
    "roberta": "families.bert.RobertaConfig",
    "xlm-roberta": "families.bert.XlmRobertaConfig",
    "electra": "families.bert.ElectraConfig",
    "albert": "families.deberta.AlbertConfig",
    "mpnet": "families.bert.MPNetConfig",
    "modernbert": "families.modernbert.ModernBertConfig",
    "deberta-v2": "families.deberta.DebertaConfig",
    "bart": "families.bart.BartConfig",
    "marian": "families.bart.MarianConfig",
    "mbart": "families.bart.MBartConfig",
    "m2m_100": "families.bart.M2M100Config",
    "pegasus": "families.bart.PegasusConfig",
    "t5": "families.t5.T5Config",
    "mt5": "families.t5.MT5Config",
    "gpt2": "families.gpt2.Gpt2Config",
    "gpt_neox": "families.gpt_neox.NeoxConfig",
    "llama": "families.llama.LlamaConfig",
    "mistral": "families.llama.MistralConfig",
    "qwen2": "families.qwen.Qwen2Config",
    "qwen3": "families.qwen.Qwen3Config",
    "gemma": "families.gemma.GemmaConfig",
    "gemma2": "families.gemma.Gemma2Config",
    "gemma3_text": "families.gemma.Gemma3Config",
    "olmo2": "families.gemma.Olmo2Config",
    "olmo3": "families.gemma.Olmo3Config",
    "smollm3": "families.llama.SmolLm3Config",
    "phi3": "families.llama.Phi3Config",
    "granite": "families.llama.GraniteConfig",
    "starcoder2": "families.llama.Starcoder2Config",
    "phi": "families.llama.PhiConfig",
    "stablelm": "families.gpt_neox.StableLmConfig",
    "cohere": "families.cohere.CohereConfig",
    "falcon": "families.gpt_neox.FalconConfig",
    "bloom": "families.gpt_neox.BloomConfig",
    "opt": "families.gpt2.OptConfig",
    "mixtral": "families.qwen.MixtralConfig",
    "qwen2_moe": "families.qwen.Qwen2MoeConfig",
    "qwen3_moe": "families.qwen.Qwen3MoeConfig",
    "gpt_oss": "families.qwen.GptOssConfig",
    "olmoe": "families.gemma.OlmoeConfig",
    "gpt_neo": "families.gpt2.GptNeoConfig",
    "ministral": "families.llama.MinistralConfig",
    "seed_oss": "families.llama.SeedOssConfig",
    "cohere2": "families.cohere.Cohere2Config",
    "exaone4": "families.gemma.Exaone4Config",
    "ernie4_5": "families.cohere.Ernie45Config",
    "helium": "families.cohere.HeliumConfig",
    "arcee": "families.llama.ArceeConfig",
    "nemotron": "families.llama.NemotronConfig",
    "glm": "families.cohere.GlmConfig",
    "glm4": "families.cohere.Glm4Config",
    "internlm3": "families.llama.InternLm3Config",
    "cwm": "families.llama.CwmConfig",
    "umt5": "families.t5.UMT5Config",
    "gpt_bigcode": "families.gpt2.GptBigCodeConfig",
    "gptj": "families.gpt2.GptJConfig",
    "nomic_bert": "families.modernbert.NomicBertConfig",
}
"""The families by `model_type`: the module of `tui_transformer.model` and the class that is the family."""

ALIASES: Mapping[str, str] = {"camembert": "xlm-roberta", "data2vec-text": "xlm-roberta"}
"""Other values of `model_type` → the family that computes the same, with the same settings and defaults."""


def family_of(model_type: str) -> type[BaseConfig]:
    """The family of a `model_type` that `FAMILIES` or `ALIASES` names."""
    module, _, name = FAMILIES[ALIASES.get(model_type, model_type)].rpartition(".")
    family: type[BaseConfig] = getattr(import_module(f"tui_transformer.model.{module}"), name)
    return family
