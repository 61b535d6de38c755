"""Names of llama.cpp for the tensors of an architecture (`gguf/tensor_mapping.py`), and which weights they are here."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.model.families.llama import rows_of_heads
from tui_transformer.model.weight_table import Part, Take, WeightTable, in_turn, layer_parts, side_by_side

Names = Mapping[str, str]
"""Tensors, without ending → those of the published checkpoint, or the steps of the program whose weights they are."""

Parts = Mapping[str, str | Part]
"""Steps → tensors that hold several weights, which keep their names."""

BLOCK, LAYER = "blk.{}", "model.layers.{}"
IN_LAYERS: Mapping[str, str] = {
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
}
STEPS: Mapping[str, str] = {
    "token_embd": "embedding.tokens",
    "position_embd": "embedding.positions",
    "token_types": "embedding.segments",
    "token_embd_norm": "embedding.norm",
    "output_norm": "{}.norm",
    **{f"{BLOCK}.{name}": f"{{}}.{{{{}}}}.{step}" for name, step in IN_LAYERS.items()},
}
"""Tensors as most architectures have them, and their steps; {} for "encoder" or "decoder"."""

BEHIND = (f"{BLOCK}.attn_output_norm", f"{BLOCK}.layer_output_norm")
"""What encoders call the norms of their sublayers, which stand behind them."""


def published(table: WeightTable) -> Names:
    """Where the tensors of an architecture go, by the table of its family; of parts of one tensor, all to that one."""
    stack = "encoder" if "encoder.{}.self_attention.query" in table.parts else "decoder"
    stems = {step: tensor for step, part in table.parts.items() if (tensor := first_of(part))}
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


def first_of(part: str | Part) -> str:
    """The likeliest tensor of a part."""
    tensors = part if isinstance(part, str) else part.tensors
    return tensors if isinstance(tensors, str) else tensors[0]


# What is otherwise


def of_block(stored: str, **tensors: str) -> Names:
    """Tensors of every block, and those of the published layer."""
    return {f"{BLOCK}.{name}": f"{stored}.{tensor}" for name, tensor in tensors.items()}


SPLIT: Parts = layer_parts("decoder.{}", BLOCK, **side_by_side("attn_qkv", rows_of_heads))
SPLIT_OF_BERT: Parts = layer_parts(
    "encoder.{}", BLOCK, **side_by_side("attn_qkv", lambda config: (config.d_model,) * 3)
)
ROUTER: Names = {f"{BLOCK}.ffn_gate_inp": "decoder.{}.feed_forward.router"}


def _experts(**tensors: Part) -> Parts:
    steps = {f"decoder.{{}}.feed_forward.experts.{{}}.{step}": part for step, part in tensors.items()}
    return {f"{step}.{kind}": part for step, part in steps.items() for kind in ("weight", "bias")}


def _stacked(tensor: str, take: Take | None = None) -> Part:
    return Part(f"{BLOCK}.{tensor}", take, stacked=True)


EXPERTS = _experts(gate=_stacked("ffn_gate_exps"), hidden=_stacked("ffn_up_exps"), output=_stacked("ffn_down_exps"))
SHARED = of_block(
    LAYER,
    ffn_gate_inp_shexp="mlp.shared_expert_gate",
    ffn_gate_shexp="mlp.shared_expert.gate_proj",
    ffn_up_shexp="mlp.shared_expert.up_proj",
    ffn_down_shexp="mlp.shared_expert.down_proj",
)
NORM_BETWEEN = of_block(LAYER, post_attention_norm="post_attention_layernorm")
GPT_OSS: Names = {**ROUTER, **NORM_BETWEEN, f"{BLOCK}.attn_sinks": "decoder.{}.self_attention.sinks"}
GPT_OSS_OF_OLLAMA: Names = {**GPT_OSS, **of_block(LAYER, attn_out="self_attn.o_proj")}
EXPERTS_OF_OLLAMA: Parts = {
    **SPLIT,
    **EXPERTS,
    **_experts(gate=_stacked("ffn_gate_up_exps", in_turn(0, 0)), hidden=_stacked("ffn_gate_up_exps", in_turn(1, 0))),
}
STABLELM: Parts = {
    f"decoder.{{}}.self_attention.{name}_norm.{{}}": Part(f"{BLOCK}.attn_{name[0]}_norm", stacked=True)
    for name in ("query", "key")
}
FALCON_TWO_NORMS = of_block("transformer.h.{}", attn_norm="ln_mlp", attn_norm_2="ln_attn")


def _stack_of_t5(ours: str, stored: str) -> Names:
    steps = {**IN_LAYERS, "attn_o": "self_attention.output", "attn_rel_b": "self_attention.biased"}
    crossed = {f"cross_{name}": step.replace("self", "cross") for name, step in steps.items() if "self" in step}
    layers = {f"{stored}.blk.{{}}.{name}": f"{ours}.{{}}.{step}" for name, step in (steps | crossed).items()}
    return {f"{stored}.output_norm": f"{ours}.norm", **layers}


T5: Names = {**_stack_of_t5("encoder", "enc"), **_stack_of_t5("decoder", "dec")}
