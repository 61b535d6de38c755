"""A model in a GGUF file: what its `config.json` would say, and its tensors where the family looks for them.

How tensors of an architecture differ from the published ones is what llama.cpp's converter does to them
(`conversion/*.py` there).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.model.checks import LARGEST_SIZE, is_whole, shown
from tui_transformer.model.families import family_of
from tui_transformer.model.gguf import names, settings
from tui_transformer.model.gguf.names import Names, Parts, first_of
from tui_transformer.model.gguf.settings import READ_HERE, Settings
from tui_transformer.model.gguf.tensors import Make, Reorder, check_places, open_gguf
from tui_transformer.model.tensors import Tensors
from tui_transformer.model.weight_table import TABLES
from tui_transformer.records import dataclass, field, replace

SHARED_KEYS: Mapping[str, str] = {
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.causal": "is_causal",
}
"""Entries of the metadata, behind the name of the architecture → settings, as most families call them."""

NEEDED = ("embedding_length", "block_count", "attention.head_count", "context_length")
SIZES = ("attention.key_length", "attention.head_count_kv")
WINDOW = "sliding_window"
OWN_STEPS = ("decoder.", "encoder.")
"""Beginnings of names of the program's own steps, whose matrices are stored in × out."""

NOT_READ = ("cls.", "cls_", "v.", "mm.", "dec.blk.0.cross_attn_rel_b")
"""Beginnings of tensors of a head that gives classes, of what sees pictures (the model of words is read alone), and of
one of old T5 files, which does nothing."""


def settings_of(file: GgufFile) -> dict[str, Any]:
    """The settings as a `config.json` would have them.

    Raises:
        InputError: The architecture is not known, or a setting of it is not read.
    """
    architecture, name = architecture_of(file), file.architecture
    raw: dict[str, Any] = {"model_type": architecture.model_type, **architecture.fixed}
    family = family_of(architecture.model_type)
    own = family.keys
    entries = {entry: own.get(setting, setting) for entry, setting in SHARED_KEYS.items()}
    epsilon = own.get("rms_norm_eps") or own.get("norm_epsilon") or "layer_norm_eps"
    entries["attention.layer_norm_epsilon"] = epsilon
    for entry, key in {**entries, **architecture.keys}.items():
        value = settings.said(file, entry)
        if value is not None:
            raw[key] = value
    for entry in (*NEEDED, *SIZES):
        value = settings.said(file, entry)
        if not is_whole(value, 1, LARGEST_SIZE) and (value is not None or entry in NEEDED):
            wrong = f"its metadata have {shown(value)} for {name}.{entry}, which is no size"
            raise InputError(f"{file.path}: {wrong}: copy it again")
    width, heads = raw[entries["embedding_length"]], raw[entries["attention.head_count"]]
    raw.setdefault(entries["attention.head_count_kv"], heads)  # as llama.cpp takes it where a file does not say it
    if "head_dim" not in family.fixed and width % heads == 0:
        raw.setdefault(entries["attention.key_length"], width // heads)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or not embedding.shape:
        raise InputError(f"{file.path}: no tensor token_embd.weight: it holds no model")
    if raw.get(WINDOW) == 0:  # how llama.cpp says that there is none
        raw[WINDOW] = None
    raw["vocab_size"] = embedding.shape[0]
    raw["tie_word_embeddings"] = "output.weight" not in file.tensors
    if "token_types.weight" in file.tensors:
        raw["type_vocab_size"] = file.tensors["token_types.weight"].shape[0]
    raw |= {key: settings.has(file, tensor) for key, tensor in architecture.told.items()}
    more = architecture.more(file, raw)
    if "rope_parameters" not in more and any(field.name == "rope_parameters" for field in family.settings()):
        raw["rope_parameters"] = settings.rope_of(file, raw)
    return {**raw, **_special(file, embedding.shape[0]), **more}


def _special(file: GgufFile, rows: int) -> dict[str, Any]:
    """The IDs of padding, of beginnings and ends, as the vocabulary has them; of padding none where it says none."""
    names = {"pad_token_id": "padding", "bos_token_id": "bos", "eos_token_id": "eos"}
    said = {key: file.metadata.get(f"tokenizer.ggml.{name}_token_id") for key, name in names.items()}
    ids = {key: value for key, value in said.items() if isinstance(value, int) and 0 <= value < rows}
    known = "pad_token_id" in ids or file.architecture == "bert"
    return ids if known else {**ids, "pad_token_id": None}


def open_model(file: GgufFile) -> Tensors:
    """The tensors under the names that the family looks for.

    Raises:
        InputError: The architecture is not known, or a tensor is damaged or not in its place.
    """
    check_places(file)
    kept = {
        name: entry for name, entry in file.tensors.items() if name not in READ_HERE and not name.startswith(NOT_READ)
    }
    architecture = architecture_of(file)
    place = functools.partial(_placed, architecture, settings_of(file))
    tensors = open_gguf(GgufFile(file.path, file.metadata, kept, file.size), place)
    stems = {NUMBER.sub("{}", name.rpartition(".")[0] + ".").rstrip(".") for name in kept}
    return replace(tensors, parts={step: part for step, part in architecture.parts.items() if first_of(part) in stems})


def _placed(architecture: Architecture, raw: Settings, name: str, shape: Shape) -> tuple[str, Make | None]:
    """Where a tensor goes; one that nothing is known of keeps its name."""
    if name.endswith(".attn_sinks"):  # as Ollama has it
        name = f"{name}.weight"
    stem, _, ending = name.rpartition(".")
    target = architecture.names.get(NUMBER.sub("{}", f"{stem}.").rstrip("."))
    if target is None:
        return name, None
    make = next((make for end, make in architecture.made.items() if name.endswith(end)), None)
    if isinstance(make, str):
        heads = raw[make] if raw.get(make) is not None else raw["num_attention_heads"]
        make = Reorder(functools.partial(_in_halves, heads))
    own = target.format(*NUMBER.findall(f"{stem}."))
    turned = own.startswith(OWN_STEPS) and len(shape) == 2 and own.rpartition(".")[2] not in TABLES
    return f"{own}.{ending}", np.transpose if turned else make


NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        model_type: The family that computes it.
        names: Where tensors go that the table of the family does not tell.
        parts: Where weights are of which a tensor holds several.
        keys: Further entries of the metadata → keys of `config.json`.
        fixed: Keys of `config.json` that the metadata do not have.
        made: How tensors differ from the published ones: ends of names → what makes them, or the setting that says of
            how many heads pairs of columns become halves.
        told: Keys of `config.json` that are true where the first layer has a tensor.
        more: Further keys of `config.json`, worked out; of rotary positions, where not all layers have the same.
    """

    model_type: str
    names: Names = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    made: Mapping[str, Make | str] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    more: settings.More = lambda _, __: {}


# How tensors are made


def _in_halves(heads: int, rows: Host) -> Host:
    """Rows whose columns turn together side by side, put back into two halves (`permute` of llama.cpp's converter)."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


_ROTARY = {
    **dict.fromkeys(("attn_q.weight", "attn_q.bias"), "num_attention_heads"),
    **dict.fromkeys(("attn_k.weight", "attn_k.bias"), "num_key_value_heads"),
}
_GEMMA: Mapping[str, Make] = {"norm.weight": lambda gamma: gamma - np.float32(1.0)}
"""γ − 1: llama.cpp keeps what rows are multiplied by."""

_WINDOW = {"attention.sliding_window": "sliding_window"}
_CAPS = {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"}
_EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
_OWN_WIDTH = {"expert_feed_forward_length": "moe_intermediate_size"}
_BIASES = {"attention_bias": "attn_output.bias", "mlp_bias": "ffn_up.bias"}
_GPT_OSS = Architecture(
    "gpt_oss",
    names.GPT_OSS,
    names.EXPERTS,
    {**_WINDOW, **_EXPERTS},
    {"attention_bias": True},
    more=settings.gpt_oss,
)
_T5 = Architecture(
    "t5",
    names.T5,
    keys={
        "feed_forward_length": "d_ff",
        "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
        "attention.relative_buckets_count": "relative_attention_num_buckets",
        "decoder_block_count": "num_decoder_layers",
        "decoder_start_token_id": "decoder_start_token_id",
    },
    more=settings.t5,
)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture(
        "llama",
        names.ROUTER,
        names.EXPERTS,
        _EXPERTS,
        made=_ROTARY,
        told=_BIASES,
        more=lambda _, raw: {"model_type": "mixtral"} if raw.get("num_experts") else {},
    ),
    "smollm3": Architecture("smollm3", made=_ROTARY, told=_BIASES),
    "granite": Architecture(
        "granite",
        keys={
            "attention.scale": "attention_multiplier",
            "embedding_scale": "embedding_multiplier",
            "residual_scale": "residual_multiplier",
            "logit_scale": "logits_scaling",
        },
        made=_ROTARY,
        told=_BIASES,
    ),
    "qwen2": Architecture("qwen2"),
    "qwen3": Architecture("qwen3"),
    "qwen2moe": Architecture(
        "qwen2_moe",
        {**names.ROUTER, **names.SHARED},
        names.EXPERTS,
        {**_EXPERTS, **_OWN_WIDTH, "expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        {"norm_topk_prob": False},
        {"ffn_gate_inp_shexp.weight": lambda gate: gate.reshape(1, -1)},
    ),
    "qwen3moe": Architecture(
        "qwen3_moe", names.ROUTER, names.EXPERTS, {**_EXPERTS, **_OWN_WIDTH}, {"norm_topk_prob": True}
    ),
    "olmo2": Architecture("olmo2", keys=_WINDOW, more=settings.olmo2),
    "olmoe": Architecture("olmoe", names.ROUTER, names.EXPERTS, _EXPERTS, {"norm_topk_prob": False}),
    "gpt-oss": replace(_GPT_OSS, keys={**_GPT_OSS.keys, "expert_feed_forward_length": "intermediate_size"}),
    "gptoss": replace(_GPT_OSS, names=names.GPT_OSS_OF_OLLAMA, parts=names.EXPERTS_OF_OLLAMA),
    "phi3": Architecture("phi3", keys=_WINDOW, more=settings.phi3),
    "phi2": Architecture("phi", parts=names.SPLIT, fixed={"hidden_act": "gelu_new"}),
    "gemma": Architecture("gemma", made=_GEMMA),
    "gemma2": Architecture(
        "gemma2",
        keys={**_WINDOW, **_CAPS},
        made=_GEMMA,
        more=lambda file, raw: {"query_pre_attn_scalar": settings.scores(file, raw)},
    ),
    "gemma3": Architecture("gemma3_text", keys={**_WINDOW, **_CAPS}, made=_GEMMA, more=settings.gemma3),
    "starcoder2": Architecture("starcoder2", fixed={"sliding_window": None}),
    "stablelm": Architecture(
        "stablelm",
        parts=names.STABLELM,
        told={"use_qkv_bias": "attn_q.bias", "qk_layernorm": "attn_q_norm.weight"},
        more=lambda file, _: {"use_parallel_residual": not settings.has(file, "ffn_norm.weight")},
    ),
    "command-r": Architecture(
        "cohere", keys={"logit_scale": "logit_scale"}, told={"use_qk_norm": "attn_q_norm.weight"}
    ),
    "cohere2": Architecture(
        "cohere2",
        keys={"logit_scale": "logit_scale", **_WINDOW},
        more=lambda file, raw: {"layer_types": settings.kinds(file, raw, 4)},
    ),
    "seed_oss": Architecture(
        "seed_oss",
        names.NORM_BETWEEN,
        told={"attention_bias": "attn_q.bias", "attention_out_bias": "attn_output.bias", "mlp_bias": "ffn_up.bias"},
    ),
    "exaone4": Architecture(  # the smaller size has no windows
        "exaone4",
        keys=_WINDOW,
        more=lambda file, raw: {"layer_types": settings.kinds(file, raw, 4) if raw.get("sliding_window") else None},
    ),
    "ernie4_5": Architecture("ernie4_5", told={"use_bias": "attn_q.bias"}),
    "nomic-bert": Architecture("nomic_bert", fixed={"hidden_act": "silu"}),
    "arcee": Architecture("arcee", fixed={"hidden_act": "relu2"}, made=_ROTARY),
    "nemotron": Architecture("nemotron", fixed={"hidden_act": "relu2"}, made=_GEMMA),
    "glm4": Architecture("glm4", told={"attention_bias": "attn_q.bias"}),
    "starcoder": Architecture("gpt_bigcode"),
    "t5": _T5,
    "t5encoder": _T5,
    "falcon": Architecture(
        "falcon", parts=names.SPLIT, fixed={"alibi": False, "bias": False, "parallel_attn": True}, more=settings.falcon
    ),
    "bloom": Architecture("bloom", parts=names.SPLIT),
    "gptneox": Architecture("gpt_neox", parts=names.SPLIT, keys={"use_parallel_residual": "use_parallel_residual"}),
    "gpt2": Architecture(
        "gpt2",
        made=dict.fromkeys(("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight"), np.transpose),
    ),
    "bert": Architecture("bert", parts=names.SPLIT_OF_BERT, fixed={"hidden_act": "gelu"}),
    "modern-bert": Architecture(
        "modernbert",
        keys={"attention.sliding_window": "local_attention", "hidden_activation": "hidden_activation"},
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
    others = names.FALCON_TWO_NORMS if settings.has(file, "attn_norm_2.weight") else own.names
    several = set(map(first_of, own.parts.values()))
    published = names.published(family_of(own.model_type).weights)
    return replace(own, names={**{key: name for key, name in published.items() if key not in several}, **others})
