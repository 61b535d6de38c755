"""Names of llama.cpp for the tensors of an architecture (`gguf/tensor_mapping.py`), and which weights they are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tui_transformer.model.weight_table import Part, WeightTable

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Several:
    """A tensor that holds several weights, one after the other on its first axis.

    Attributes:
        names: Of the weights, in their order; a single one stands for as many as there are, numbered in its last {}.
        sizes: How many rows each has, given the settings; None where each is one cell of the axis, which it loses.
            With several names, a cell then has the rows of all of them in turn.
    """

    names: tuple[str, ...]
    sizes: Callable[[Settings], Sequence[int]] | None = None


Names = Mapping[str, str | Several]
"""Tensors, without ending → those of the published checkpoint, or the steps of the program whose weights they are."""


def rows_of_heads(raw: Settings) -> tuple[int, int, int]:
    """Rows of all queries, of all keys and of all values."""
    heads = raw.get("num_attention_heads") or raw["n_head"]
    width = raw.get("head_dim") or raw["hidden_size"] // heads
    keys = raw.get("num_key_value_heads") or raw.get("num_kv_heads") or heads
    return heads * width, keys * width, keys * width


BLOCK, LAYER = "blk.{}", "model.layers.{}"
STEPS: Mapping[str, str] = {
    "token_embd": "embedding.tokens",
    "position_embd": "embedding.positions",
    "token_types": "embedding.segments",
    "token_embd_norm": "embedding.norm",
    "output_norm": "{}.norm",
    **{
        f"{BLOCK}.{name}": f"{{}}.{{{{}}}}.{step}"
        for name, step in {
            "attn_norm": "self_attention.norm",
            "attn_q": "self_attention.query",
            "attn_q_norm": "self_attention.query_norm",
            "attn_k": "self_attention.key",
            "attn_k_norm": "self_attention.key_norm",
            "attn_v": "self_attention.value",
            "attn_output": "self_attention.output",
            "attn_output_norm": "self_attention.norm",
            "post_attention_norm": "self_attention.output_norm",
            "ffn_norm": "feed_forward.norm",
            "ffn_gate": "feed_forward.gate",
            "ffn_up": "feed_forward.hidden",
            "ffn_down": "feed_forward.output",
            "layer_output_norm": "feed_forward.norm",
            "post_ffw_norm": "feed_forward.output_norm",
        }.items()
    },
}
"""Tensors as most architectures have them, and their steps; {} for "encoder" or "decoder"."""

BEHIND = (f"{BLOCK}.attn_output_norm", f"{BLOCK}.layer_output_norm")
"""What encoders call the norms of their sublayers, which stand behind them."""


def published(table: WeightTable) -> Names:
    """Where the tensors of an architecture go, by the table of its family; of parts of one tensor, all to that one."""
    stack = "encoder" if "encoder.{}.self_attention.query" in table.parts else "decoder"
    stems = {step: tensor for step, part in table.parts.items() if (tensor := _first(part))}
    names = {name: stems[step.format(stack)] for name, step in STEPS.items() if step.format(stack) in stems}
    if "decoder.{}.self_attention.query" in table.parts:
        names["output"] = stems["output.logits"]
        names = {name: tensor for name, tensor in names.items() if name not in BEHIND}
    if names[f"{BLOCK}.attn_q"] == names[f"{BLOCK}.attn_k"]:
        names[f"{BLOCK}.attn_qkv"] = names[f"{BLOCK}.attn_q"]
        for part in ("attn_q", "attn_k", "attn_v"):
            del names[f"{BLOCK}.{part}"]
    if names.get(f"{BLOCK}.ffn_gate") == names[f"{BLOCK}.ffn_up"]:
        del names[f"{BLOCK}.ffn_gate"]
    return names


def _first(part: str | Part) -> str:
    tensors = part if isinstance(part, str) else part.tensors
    return tensors if isinstance(tensors, str) else tensors[0]


# What is otherwise


def of_block(stored: str, **tensors: str) -> Names:
    """Tensors of every block, and those of the published layer."""
    return {f"{BLOCK}.{name}": f"{stored}.{tensor}" for name, tensor in tensors.items()}


QKV = ("query", "key", "value")
SPLIT: Names = {
    f"{BLOCK}.attn_qkv": Several(tuple(f"decoder.{{}}.self_attention.{part}" for part in QKV), rows_of_heads)
}
SPLIT_OF_BERT: Names = {
    f"{BLOCK}.attn_qkv": Several(tuple(f"bert.encoder.layer.{{}}.attention.self.{part}" for part in QKV), rows_of_heads)
}
EXPERT = "decoder.{}.feed_forward.experts.{}"
EXPERTS: Names = {
    f"{BLOCK}.ffn_gate_inp": "decoder.{}.feed_forward.router",
    f"{BLOCK}.ffn_gate_exps": Several((f"{EXPERT}.gate",)),
    f"{BLOCK}.ffn_up_exps": Several((f"{EXPERT}.hidden",)),
    f"{BLOCK}.ffn_down_exps": Several((f"{EXPERT}.output",)),
}
SHARED = of_block(
    LAYER,
    ffn_gate_inp_shexp="mlp.shared_expert_gate",
    ffn_gate_shexp="mlp.shared_expert.gate_proj",
    ffn_up_shexp="mlp.shared_expert.up_proj",
    ffn_down_shexp="mlp.shared_expert.down_proj",
)
NORM_BETWEEN = of_block(LAYER, post_attention_norm="post_attention_layernorm")
GPT_OSS: Names = {**EXPERTS, **NORM_BETWEEN, f"{BLOCK}.attn_sinks": "decoder.{}.self_attention.sinks"}
GPT_OSS_OF_OLLAMA: Names = {
    **GPT_OSS,
    **SPLIT,
    **of_block(LAYER, attn_out="self_attn.o_proj"),
    f"{BLOCK}.ffn_gate_up_exps": Several((f"{EXPERT}.gate", f"{EXPERT}.hidden")),
}
STABLELM: Names = {
    f"{BLOCK}.attn_{part}_norm": Several((f"{LAYER}.self_attn.{part}_layernorm.norms.{{}}",)) for part in "qk"
}
FALCON_TWO_NORMS: Names = {**SPLIT, **of_block("transformer.h.{}", attn_norm="ln_mlp", attn_norm_2="ln_attn")}


def _stack_of_t5(ours: str, stored: str) -> Names:
    block, feed = f"{stored}.blk.{{}}", f"{ours}.{{}}.feed_forward"
    parts = {"norm": "norm", "q": "query", "k": "key", "v": "value", "o": "output", "rel_b": "biased"}
    return {
        f"{stored}.output_norm": f"{ours}.norm",
        **{f"{block}.attn_{name}": f"{ours}.{{}}.self_attention.{part}" for name, part in parts.items()},
        **{f"{block}.cross_attn_{name}": f"{ours}.{{}}.cross_attention.{part}" for name, part in parts.items()},
        f"{block}.ffn_norm": f"{feed}.norm",
        f"{block}.ffn_gate": f"{feed}.gate",
        f"{block}.ffn_up": f"{feed}.hidden",
        f"{block}.ffn_down": f"{feed}.output",
    }


T5: Names = {**_stack_of_t5("encoder", "enc"), **_stack_of_t5("decoder", "dec")}
