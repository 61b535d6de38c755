"""Names of llama.cpp for the tensors of an architecture (`gguf/tensor_mapping.py`), and which weights they are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def _rows_of_heads(raw: Settings) -> tuple[int, int, int]:
    """Rows of all queries, of all keys and of all values."""
    heads = raw.get("num_attention_heads") or raw["n_head"]
    width = raw.get("head_dim") or raw["hidden_size"] // heads
    keys = raw.get("num_key_value_heads") or raw.get("num_kv_heads") or heads
    return heads * width, keys * width, keys * width


BLOCK, LAYER = "blk.{}", "model.layers.{}"
ATTENTION, EXPERT = "decoder.{}.self_attention", "decoder.{}.feed_forward.experts.{}"
SPLIT = Several(tuple(f"{ATTENTION}.{part}" for part in ("query", "key", "value")), _rows_of_heads)
EXPERTS: Names = {
    f"{BLOCK}.ffn_gate_inp": "decoder.{}.feed_forward.router",
    f"{BLOCK}.ffn_gate_exps": Several((f"{EXPERT}.gate",)),
    f"{BLOCK}.ffn_up_exps": Several((f"{EXPERT}.hidden",)),
    f"{BLOCK}.ffn_down_exps": Several((f"{EXPERT}.output",)),
}
LLAMA: Names = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    f"{BLOCK}.attn_norm": f"{LAYER}.input_layernorm",
    f"{BLOCK}.attn_q": f"{LAYER}.self_attn.q_proj",
    f"{BLOCK}.attn_q_norm": f"{LAYER}.self_attn.q_norm",
    f"{BLOCK}.attn_k": f"{LAYER}.self_attn.k_proj",
    f"{BLOCK}.attn_k_norm": f"{LAYER}.self_attn.k_norm",
    f"{BLOCK}.attn_v": f"{LAYER}.self_attn.v_proj",
    f"{BLOCK}.attn_output": f"{LAYER}.self_attn.o_proj",
    f"{BLOCK}.ffn_norm": f"{LAYER}.post_attention_layernorm",
    f"{BLOCK}.ffn_gate": f"{LAYER}.mlp.gate_proj",
    f"{BLOCK}.ffn_up": f"{LAYER}.mlp.up_proj",
    f"{BLOCK}.ffn_down": f"{LAYER}.mlp.down_proj",
}
MIXTRAL = {**LLAMA, **EXPERTS}
QWEN2_MOE = {
    **MIXTRAL,
    f"{BLOCK}.ffn_gate_inp_shexp": f"{LAYER}.mlp.shared_expert_gate",
    f"{BLOCK}.ffn_gate_shexp": f"{LAYER}.mlp.shared_expert.gate_proj",
    f"{BLOCK}.ffn_up_shexp": f"{LAYER}.mlp.shared_expert.up_proj",
    f"{BLOCK}.ffn_down_shexp": f"{LAYER}.mlp.shared_expert.down_proj",
}
GPT_OSS = {
    **MIXTRAL,
    f"{BLOCK}.attn_sinks": f"{ATTENTION}.sinks",
    f"{BLOCK}.post_attention_norm": f"{LAYER}.post_attention_layernorm",
}
GPT_OSS_OF_OLLAMA = {
    **GPT_OSS,
    f"{BLOCK}.attn_qkv": SPLIT,
    f"{BLOCK}.attn_out": f"{LAYER}.self_attn.o_proj",
    f"{BLOCK}.ffn_gate_up_exps": Several((f"{EXPERT}.gate", f"{EXPERT}.hidden")),
}
PHI3 = {
    **LLAMA,
    f"{BLOCK}.attn_qkv": f"{LAYER}.self_attn.qkv_proj",
    f"{BLOCK}.ffn_up": f"{LAYER}.mlp.gate_up_proj",
}
GEMMA2 = {
    **LLAMA,
    f"{BLOCK}.post_attention_norm": f"{LAYER}.post_attention_layernorm",
    f"{BLOCK}.ffn_norm": f"{LAYER}.pre_feedforward_layernorm",
    f"{BLOCK}.post_ffw_norm": f"{LAYER}.post_feedforward_layernorm",
}
GLM4 = {
    **LLAMA,
    f"{BLOCK}.ffn_norm": f"{LAYER}.post_attention_layernorm",
    f"{BLOCK}.ffn_up": f"{LAYER}.mlp.gate_up_proj",
    f"{BLOCK}.post_attention_norm": f"{LAYER}.post_self_attn_layernorm",
    f"{BLOCK}.post_ffw_norm": f"{LAYER}.post_mlp_layernorm",
}
OLMO2 = {
    **LLAMA,
    f"{BLOCK}.post_attention_norm": f"{LAYER}.post_attention_layernorm",
    f"{BLOCK}.post_ffw_norm": f"{LAYER}.post_feedforward_layernorm",
}
SEED_OSS = {**LLAMA, f"{BLOCK}.post_attention_norm": f"{LAYER}.post_attention_layernorm"}
STARCODER2 = {**LLAMA, f"{BLOCK}.ffn_up": f"{LAYER}.mlp.c_fc", f"{BLOCK}.ffn_down": f"{LAYER}.mlp.c_proj"}
STABLELM = {
    **LLAMA,
    f"{BLOCK}.attn_q_norm": Several((f"{LAYER}.self_attn.q_layernorm.norms.{{}}",)),
    f"{BLOCK}.attn_k_norm": Several((f"{LAYER}.self_attn.k_layernorm.norms.{{}}",)),
}
PHI2 = {
    **LLAMA,
    "output_norm": "model.final_layernorm",
    f"{BLOCK}.attn_qkv": SPLIT,
    f"{BLOCK}.attn_output": f"{LAYER}.self_attn.dense",
    f"{BLOCK}.ffn_up": f"{LAYER}.mlp.fc1",
    f"{BLOCK}.ffn_down": f"{LAYER}.mlp.fc2",
}
GPT2: Names = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    f"{BLOCK}.attn_norm": "transformer.h.{}.ln_1",
    f"{BLOCK}.attn_qkv": "transformer.h.{}.attn.c_attn",
    f"{BLOCK}.attn_output": "transformer.h.{}.attn.c_proj",
    f"{BLOCK}.ffn_norm": "transformer.h.{}.ln_2",
    f"{BLOCK}.ffn_up": "transformer.h.{}.mlp.c_fc",
    f"{BLOCK}.ffn_down": "transformer.h.{}.mlp.c_proj",
}


def _fused(layer: str, attention: str) -> Names:
    """A layer whose query, key and value are one tensor."""
    return {
        f"{BLOCK}.attn_norm": f"{layer}.input_layernorm",
        f"{BLOCK}.attn_qkv": SPLIT,
        f"{BLOCK}.attn_output": f"{layer}.{attention}.dense",
        f"{BLOCK}.ffn_norm": f"{layer}.post_attention_layernorm",
        f"{BLOCK}.ffn_up": f"{layer}.mlp.dense_h_to_4h",
        f"{BLOCK}.ffn_down": f"{layer}.mlp.dense_4h_to_h",
    }


GPT_NEOX: Names = {
    "token_embd": "gpt_neox.embed_in",
    "output_norm": "gpt_neox.final_layer_norm",
    "output": "embed_out",
    **_fused("gpt_neox.layers.{}", "attention"),
}
_BLOOM = "transformer.h.{}"
BLOOM: Names = {
    "token_embd": "transformer.word_embeddings",
    "token_embd_norm": "transformer.word_embeddings_layernorm",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    **_fused(_BLOOM, "self_attention"),
}
FALCON = BLOOM
FALCON_TWO_NORMS = {
    **BLOOM,
    f"{BLOCK}.attn_norm": f"{_BLOOM}.ln_mlp",
    f"{BLOCK}.attn_norm_2": f"{_BLOOM}.ln_attn",
}
ENCODER = "bert.encoder.layer.{}"
BERT: Names = {
    "token_embd": "bert.embeddings.word_embeddings",
    "position_embd": "bert.embeddings.position_embeddings",
    "token_types": "bert.embeddings.token_type_embeddings",
    "token_embd_norm": "bert.embeddings.LayerNorm",
    f"{BLOCK}.attn_q": f"{ENCODER}.attention.self.query",
    f"{BLOCK}.attn_k": f"{ENCODER}.attention.self.key",
    f"{BLOCK}.attn_v": f"{ENCODER}.attention.self.value",
    f"{BLOCK}.attn_qkv": Several(
        tuple(f"{ENCODER}.attention.self.{part}" for part in ("query", "key", "value")), _rows_of_heads
    ),
    f"{BLOCK}.attn_output": f"{ENCODER}.attention.output.dense",
    f"{BLOCK}.attn_output_norm": f"{ENCODER}.attention.output.LayerNorm",
    f"{BLOCK}.ffn_up": f"{ENCODER}.intermediate.dense",
    f"{BLOCK}.ffn_down": f"{ENCODER}.output.dense",
    f"{BLOCK}.layer_output_norm": f"{ENCODER}.output.LayerNorm",
}


def _attention_of_t5(ours: str, stored: str) -> Names:
    parts = {"norm": "norm", "q": "query", "k": "key", "v": "value", "o": "output", "rel_b": "biased"}
    return {f"{stored}_{name}": f"{ours}.{part}" for name, part in parts.items()}


def _stack_of_t5(ours: str, stored: str) -> Names:
    block, feed = f"{stored}.blk.{{}}", f"{ours}.{{}}.feed_forward"
    return {
        f"{stored}.output_norm": f"{ours}.norm",
        **_attention_of_t5(f"{ours}.{{}}.self_attention", f"{block}.attn"),
        **_attention_of_t5(f"{ours}.{{}}.cross_attention", f"{block}.cross_attn"),
        f"{block}.ffn_norm": f"{feed}.norm",
        f"{block}.ffn_gate": f"{feed}.gate",
        f"{block}.ffn_up": f"{feed}.hidden",
        f"{block}.ffn_down": f"{feed}.output",
    }


T5: Names = {
    "token_embd": "shared",
    "output": "lm_head",
    **_stack_of_t5("encoder", "enc"),
    **_stack_of_t5("decoder", "dec"),
}
_NOMIC = "nomic_bert.encoder.layers.{}"
NOMIC_BERT: Names = {
    "token_embd": "nomic_bert.embeddings.word_embeddings",
    "token_types": "nomic_bert.embeddings.token_type_embeddings",
    "token_embd_norm": "nomic_bert.emb_ln",
    f"{BLOCK}.attn_qkv": f"{_NOMIC}.attn.Wqkv",
    f"{BLOCK}.attn_output": f"{_NOMIC}.attn.out_proj",
    f"{BLOCK}.attn_output_norm": f"{_NOMIC}.norm1",
    f"{BLOCK}.ffn_up": f"{_NOMIC}.mlp.fc11",
    f"{BLOCK}.ffn_gate": f"{_NOMIC}.mlp.fc12",
    f"{BLOCK}.ffn_down": f"{_NOMIC}.mlp.fc2",
    f"{BLOCK}.layer_output_norm": f"{_NOMIC}.norm2",
}
MODERN_BERT: Names = {
    "token_embd": "model.embeddings.tok_embeddings",
    "token_embd_norm": "model.embeddings.norm",
    "output_norm": "model.final_norm",
    f"{BLOCK}.attn_norm": f"{LAYER}.attn_norm",
    f"{BLOCK}.attn_qkv": f"{LAYER}.attn.Wqkv",
    f"{BLOCK}.attn_output": f"{LAYER}.attn.Wo",
    f"{BLOCK}.ffn_norm": f"{LAYER}.mlp_norm",
    f"{BLOCK}.ffn_up": f"{LAYER}.mlp.Wi",
    f"{BLOCK}.ffn_down": f"{LAYER}.mlp.Wo",
}
