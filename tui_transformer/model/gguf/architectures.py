"""Architectures of llama.cpp: which family they are, and what their metadata say that is otherwise than in Llama.

How the tensors differ from the published ones is what llama.cpp's converter does to them (`conversion/*.py` there).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.checks import shown
from tui_transformer.model.gguf import names, settings
from tui_transformer.model.gguf.names import Names, Settings
from tui_transformer.model.gguf.tensors import Make

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        model_type: The family that computes it.
        names: Where its tensors go.
        keys: Further entries of the metadata → keys of `config.json`.
        fixed: Keys of `config.json` that the metadata do not have.
        made: How tensors differ from the published ones: ends of names → what makes them, given the settings.
        more: Further keys of `config.json`, worked out.
    """

    model_type: str
    names: Names
    keys: Mapping[str, str] = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    made: Mapping[str, Callable[[Settings], Make]] = field(default_factory=dict)
    more: settings.More = settings.rope_alone


# How tensors are made


def _paired(heads: str) -> Callable[[Settings], Make]:
    """Rows whose columns turn together side by side, put back into two halves (`permute` of llama.cpp's converter)."""

    def made(raw: Settings) -> Make:
        count = raw[heads] if raw.get(heads) is not None else raw["num_attention_heads"]

        def put_back(rows: Host) -> Host:
            pairs = rows.reshape(count, -1, 2, *rows.shape[1:])
            return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)

        return put_back

    return made


def _less_one(_: Settings) -> Make:
    """γ − 1: llama.cpp keeps what rows are multiplied by."""
    return lambda gamma: gamma - np.float32(1.0)


def _turned(_: Settings) -> Make:
    return np.transpose


def _one_row(_: Settings) -> Make:
    return lambda gate: gate.reshape(1, -1)


_ROTARY = {
    **dict.fromkeys(("attn_q.weight", "attn_q.bias"), _paired("num_attention_heads")),
    **dict.fromkeys(("attn_k.weight", "attn_k.bias"), _paired("num_key_value_heads")),
}
_GEMMA = {"norm.weight": _less_one}


_WINDOW = {"attention.sliding_window": "sliding_window"}
_CAPS = {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"}
_EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
_OWN_WIDTH = {"expert_feed_forward_length": "moe_intermediate_size"}
_EPSILON = "attention.layer_norm_epsilon"
_IN_PART = settings.by_tensors(in_part=True)
_LLAMA = Architecture("llama", names.MIXTRAL, _EXPERTS, made=_ROTARY, more=settings.llama)
_OF_GPT2 = {
    "embedding_length": "n_embd",
    "feed_forward_length": "n_inner",
    "block_count": "n_layer",
    "attention.head_count": "n_head",
    "context_length": "n_positions",
    _EPSILON: "layer_norm_epsilon",
}
_T5 = Architecture(
    "t5",
    names.T5,
    {
        "feed_forward_length": "d_ff",
        "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
        "attention.relative_buckets_count": "relative_attention_num_buckets",
        "decoder_block_count": "num_decoder_layers",
        "decoder_start_token_id": "decoder_start_token_id",
    },
    more=settings.t5,
)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "smollm3": replace(_LLAMA, model_type="smollm3", names=names.LLAMA, keys={}),
    "granite": replace(
        _LLAMA,
        model_type="granite",
        names=names.LLAMA,
        keys={
            "attention.scale": "attention_multiplier",
            "embedding_scale": "embedding_multiplier",
            "residual_scale": "residual_multiplier",
            "logit_scale": "logits_scaling",
        },
    ),
    "qwen2": Architecture("qwen2", names.LLAMA),
    "qwen3": Architecture("qwen3", names.LLAMA),
    "qwen2moe": Architecture(
        "qwen2_moe",
        names.QWEN2_MOE,
        {**_EXPERTS, **_OWN_WIDTH, "expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        {"norm_topk_prob": False},
        {"ffn_gate_inp_shexp.weight": _one_row},
    ),
    "qwen3moe": Architecture("qwen3_moe", names.MIXTRAL, {**_EXPERTS, **_OWN_WIDTH}, {"norm_topk_prob": True}),
    "olmo2": Architecture("olmo2", names.OLMO2, _WINDOW, more=settings.olmo2),
    "olmoe": Architecture("olmoe", names.MIXTRAL, _EXPERTS, {"norm_topk_prob": False}),
    "gpt-oss": Architecture(
        "gpt_oss",
        names.GPT_OSS,
        {**_WINDOW, **_EXPERTS, "expert_feed_forward_length": "intermediate_size"},
        {"attention_bias": True},
        more=settings.gpt_oss,
    ),
    "gptoss": Architecture(
        "gpt_oss", names.GPT_OSS_OF_OLLAMA, {**_WINDOW, **_EXPERTS}, {"attention_bias": True}, more=settings.gpt_oss
    ),
    "phi3": Architecture("phi3", names.PHI3, _WINDOW, more=settings.phi3),
    "phi2": Architecture("phi", names.PHI2, fixed={"hidden_act": "gelu_new"}, more=_IN_PART),
    "gemma": Architecture("gemma", names.LLAMA, made=_GEMMA),
    "gemma2": Architecture("gemma2", names.GEMMA2, {**_WINDOW, **_CAPS}, made=_GEMMA, more=settings.gemma2),
    "gemma3": Architecture("gemma3_text", names.GEMMA2, {**_WINDOW, **_CAPS}, made=_GEMMA, more=settings.gemma3),
    "starcoder2": Architecture("starcoder2", names.STARCODER2, {_EPSILON: "norm_epsilon"}, {"sliding_window": None}),
    "stablelm": Architecture("stablelm", names.STABLELM, more=settings.stablelm),
    "command-r": Architecture(
        "cohere",
        names.LLAMA,
        {"logit_scale": "logit_scale"},
        more=settings.by_tensors(use_qk_norm="attn_q_norm.weight"),
    ),
    "cohere2": Architecture("cohere2", names.LLAMA, {"logit_scale": "logit_scale", **_WINDOW}, more=settings.cohere2),
    "seed_oss": Architecture(
        "seed_oss",
        names.SEED_OSS,
        more=settings.by_tensors(
            attention_bias="attn_q.bias", attention_out_bias="attn_output.bias", mlp_bias="ffn_up.bias"
        ),
    ),
    "exaone4": Architecture("exaone4", names.OLMO2, _WINDOW, more=settings.exaone4),
    "ernie4_5": Architecture("ernie4_5", names.LLAMA, more=settings.by_tensors(use_bias="attn_q.bias")),
    "nomic-bert": Architecture("nomic_bert", names.NOMIC_BERT, fixed={"hidden_act": "silu"}),
    "arcee": Architecture("arcee", names.LLAMA, fixed={"hidden_act": "relu2"}, made=_ROTARY),
    "nemotron": Architecture(
        "nemotron",
        names.LLAMA,
        {_EPSILON: "norm_eps"},
        {"hidden_act": "relu2"},
        _GEMMA,
        more=_IN_PART,
    ),
    "glm4": Architecture("glm4", names.GLM4, more=settings.by_tensors(in_part=True, attention_bias="attn_q.bias")),
    "starcoder": Architecture("gpt_bigcode", names.GPT2, _OF_GPT2, more=settings.no_rope),
    "t5": _T5,
    "t5encoder": _T5,
    "falcon": Architecture(
        "falcon",
        names.FALCON,
        {
            _EPSILON: "layer_norm_epsilon",
            "attention.head_count_kv": "num_kv_heads",
            "feed_forward_length": "ffn_hidden_size",
        },
        {"alibi": False, "bias": False, "parallel_attn": True},
        more=settings.falcon,
    ),
    "bloom": Architecture(
        "bloom",
        names.BLOOM,
        {
            _EPSILON: "layer_norm_epsilon",
            "block_count": "n_layer",
            "attention.head_count": "n_head",
            "context_length": "seq_length",
        },
        more=settings.no_rope,
    ),
    "gptneox": Architecture(
        "gpt_neox",
        names.GPT_NEOX,
        {"use_parallel_residual": "use_parallel_residual"},
        more=_IN_PART,
    ),
    "gpt2": Architecture(
        "gpt2",
        names.GPT2,
        _OF_GPT2,
        made=dict.fromkeys(("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight"), _turned),
        more=settings.no_rope,
    ),
    "bert": Architecture("bert", names.BERT, fixed={"hidden_act": "gelu"}, more=settings.no_rope),
    "modern-bert": Architecture(
        "modernbert",
        names.MODERN_BERT,
        {
            _EPSILON: "norm_eps",
            "attention.sliding_window": "local_attention",
            "hidden_activation": "hidden_activation",
        },
        more=settings.modern_bert,
    ),
}
"""By the name that `general.architecture` gives."""


def architecture_of(file: GgufFile) -> Architecture:
    """The architecture of a file.

    Raises:
        InputError: It is not known, or the file is one part of several.
    """
    name = file.architecture
    parts = file.metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise InputError(f"{file.path}: one part of {parts}: merge them with llama-gguf-split")
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise InputError(f"{file.path}: architecture {shown(name)} is not read from GGUF: {known} are")
    own = ARCHITECTURES[name]
    return replace(own, names=names.FALCON_TWO_NORMS) if settings.has(file, "attn_norm_2.weight") else own
