"""The names that llama.cpp gives to tensors while it computes: `Qcur-0`, `kq_soft_max-0`, `ffn_out-0`."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.diagnosis.naming.name import Table, Target, last_logits, present, stacks, table
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

TENSORS = {
    "attn_norm": ("self_attention.norm",),
    "Qcur": ("self_attention.query", "self_attention.query_norm", "self_attention.query_rotated"),
    "Kcur": ("self_attention.key", "self_attention.key_norm", "self_attention.key_rotated"),
    "Vcur": ("self_attention.value",),
    "Qcur_normed": ("self_attention.query_norm",),
    "Kcur_normed": ("self_attention.key_norm",),
    "Qcur-rope": ("self_attention.query_rotated",),
    "Kcur-rope": ("self_attention.key_rotated",),
    "q": ("self_attention.query_rotated", "self_attention.query"),
    "k": ("self_attention.key_rotated", "self_attention.key"),
    "kq": ("self_attention.scores", "self_attention.scaled", "self_attention.masked"),
    "kq_scaled": ("self_attention.scaled",),
    "kq_masked": ("self_attention.masked",),
    "kq_soft_max": ("self_attention.weights",),
    "kq_soft_max_ext": ("self_attention.weights",),
    "kqv": ("self_attention.context",),
    "kqv_merged": ("self_attention.context", "self_attention.concat"),
    "kqv_merged_cont": ("self_attention.concat",),
    "kqv_wo": ("self_attention.output",),
    "kqv_out": ("self_attention.concat", "self_attention.output"),
    "attn_out": ("self_attention.output", "self_attention.residual"),
    "attn_output": ("self_attention.output",),
    "ffn_inp": ("self_attention.residual", "self_attention.norm"),
    "ffn_norm": ("feed_forward.norm",),
    "ffn_up": ("feed_forward.hidden",),
    "ffn_up_b": ("feed_forward.hidden",),
    "ffn_gate": ("feed_forward.gate",),
    "ffn_gate_b": ("feed_forward.gate",),
    "ffn_silu": ("feed_forward.activation",),
    "ffn_gelu": ("feed_forward.activation",),
    "ffn_relu": ("feed_forward.activation",),
    "ffn_gate_par": ("feed_forward.gated",),
    "ffn_swiglu": ("feed_forward.gated",),
    "ffn_geglu": ("feed_forward.gated",),
    "ffn_down": ("feed_forward.output",),
    "ffn_out": ("feed_forward.output",),
    "l_out": ("output", "feed_forward.residual"),
    "layer_out": ("output",),
}
"""Tensors of a layer → steps of it."""

PAIRED = frozenset({"Qcur", "Kcur", "q", "k"})
"""Tensors whose columns may be in the order of GGUF files."""

OUTSIDE = {
    "inp_embd": ("embedding.tokens", "embedding.output"),
    "inp_scaled": ("embedding.tokens",),
    "pos_embd": ("embedding.positions",),
    "inpL": ("embedding.output",),
    "inp_norm": ("embedding.norm",),
    "result_norm": ("{}.norm", "{}.norm"),
    "result_embd": ("{}.norm",),
}
"""The others; {} is the stack."""


def ggml(model: Model, program: Program) -> Table:
    """Tensors of the graph of llama.cpp, with the number of the layer behind a dash."""
    del model
    return table(_names(program))


def _names(program: Program) -> Iterator[tuple[str, Target]]:
    for stack in stacks(program)[-1:]:
        for name, steps in OUTSIDE.items():
            yield name, Target(present(program, *(step.format(stack.name) for step in steps)))
        yield "result_output", Target(last_logits(program))
        for i in range(stack.layers):
            for name, steps in TENSORS.items():
                base, _, op = name.partition("-")
                targets = present(program, *(f"{stack.name}.{i}.{step}" for step in steps))
                yield f"{base}-{i}{f' ({op})' if op else ''}", Target(targets, paired=base in PAIRED)
