"""Conventions with a name for every step: the program's own, transformers' outputs, TransformerLens, llama.cpp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tui_transformer.diagnosis.naming.phrases import Convention, Stack, Target, last_logits, present, stacks, table
from tui_transformer.engine.program import Program


def _for_program(names: Callable[[Program], Iterator[tuple[str, Target]]]) -> Convention:
    """A convention whose names follow from the program alone."""
    return lambda _, program: table(names(program))


LATER = ("scores", "scaled", "capped", "biased", "masked")
"""Steps between the product of queries and keys and the softmax: a name may stand for a later one."""


@_for_program
def canonical(program: Program) -> Iterator[tuple[str, Target]]:
    """Every step and alias, with `value/` in front or without."""
    for name in program.names:
        place, _, part = name.rpartition(".")
        after = LATER[LATER.index(part) :] if part in LATER and place else ()
        target = Target(present(program, name, *(f"{place}.{later}" for later in after)))
        yield name, target
        yield f"value/{name}", target


HIDDEN = ("hidden_states", "hidden_state", "hidden", "all_hidden_states", "hiddens")
ATTENTION = ("attentions", "attention", "attn", "attention_weights", "all_attentions", "attention_probs")


@_for_program
def outputs(program: Program) -> Iterator[tuple[str, Target]]:
    """Tuples by index, the last hidden state, logits."""
    every = stacks(program)
    for stack in every:
        main = len(every) == 1 or stack.name == "encoder"
        for prefix in (f"{stack.name}_", *([""] if main else [])):
            for i in range(stack.layers + 1):
                target = Target(_hidden(program, stack, i))
                yield from ((f"{prefix}{name}.{i}", target) for name in HIDDEN)
            for i in range(stack.layers):
                target = Target(present(program, f"{stack.name}.{i}.self_attention.weights"))
                yield from ((f"{prefix}{name}.{i}", target) for name in ATTENTION)
        last = Target(_hidden(program, stack, stack.layers))
        yield f"{stack.name}_last_hidden_state", last
        if stack is every[-1]:
            yield "last_hidden_state", last
    for i in range(every[-1].layers if every else 0):
        target = Target(present(program, f"decoder.{i}.cross_attention.weights"))
        yield from ((f"cross_{name}.{i}", target) for name in ATTENTION)
    for name in ("logits", "prediction_logits", "lm_logits"):
        yield name, Target(last_logits(program))
    for name in ("probabilities", "probs", "output_probs"):
        yield name, Target(present(program, "output.probabilities"))
    yield "loss", Target(present(program, "loss"))


def _hidden(program: Program, stack: Stack, i: int) -> tuple[str, ...]:
    """The rows that enter layer i; after the last layer, the norm of the stack, where it has one."""
    if i == 0:
        return present(program, stack.entrance, f"{stack.embedding}embedding.tokens")
    if i == stack.layers:
        return present(program, f"{stack.name}.norm", stack.exit)
    return present(program, f"{stack.name}.{i - 1}.output")


HOOKS: Mapping[str, tuple[str, ...]] = {
    "hook_resid_mid": ("self_attention.residual",),
    "hook_attn_out": ("self_attention.output_norm", "self_attention.output"),
    "hook_mlp_out": ("feed_forward.output_norm", "feed_forward.output"),
    "hook_resid_post": ("output", "feed_forward.residual"),
    "hook_out": ("output", "feed_forward.residual"),
    "attn.hook_q": ("self_attention.query", "self_attention.query_norm"),
    "attn.hook_k": ("self_attention.key", "self_attention.key_norm"),
    "attn.hook_v": ("self_attention.value",),
    "attn.q.hook_out": ("self_attention.query",),
    "attn.k.hook_out": ("self_attention.key",),
    "attn.v.hook_out": ("self_attention.value",),
    "attn.q_norm.hook_out": ("self_attention.query_norm",),
    "attn.k_norm.hook_out": ("self_attention.key_norm",),
    "attn.hook_rot_q": ("self_attention.query_rotated",),
    "attn.hook_rot_k": ("self_attention.key_rotated",),
    "attn.hook_attn_scores": ("self_attention.masked", "self_attention.scaled"),
    "attn.hook_pattern": ("self_attention.weights",),
    "attn.hook_z": ("self_attention.context",),
    "attn.o.hook_out": ("self_attention.output",),
    "attn.hook_out": ("self_attention.output", "self_attention.residual"),
    "mlp.in.hook_out": ("feed_forward.hidden",),
    "mlp.gate.hook_out": ("feed_forward.gate", "feed_forward.router"),
    "mlp.hook_post": ("feed_forward.gated", "feed_forward.activation"),
    "mlp.out.hook_out": ("feed_forward.output",),
    "mlp.hook_out": ("feed_forward.output", "feed_forward.residual"),
}
"""Hooks of a block → steps of a layer; scores are masked and divided before their hook.

Of several steps a hook is the first that the model has, or the one whose values it holds: modules of some models
normalise, or add the residual stream, before their hook.
"""

NORMALISED: Mapping[str, tuple[str, ...]] = {
    "ln1": ("self_attention.norm",),
    "ln2": ("feed_forward.norm",),
    "ln1_post": ("self_attention.output_norm",),
    "ln2_post": ("feed_forward.output_norm",),
}
"""Norms, whose `hook_normalized` is behind γ and β in versions before 4, which have no `hook_out` for it."""


@_for_program
def transformer_lens(program: Program) -> Iterator[tuple[str, Target]]:
    """Hooks of the whole model and of every block."""
    for stack in stacks(program)[-1:]:
        yield "hook_embed", Target(present(program, "embedding.tokens", "embedding.norm", "embedding.output"))
        yield "hook_pos_embed", Target(present(program, "embedding.positions"))
        yield "hook_full_embed", Target(present(program, "embedding.output"))
        yield from _norm("ln_final", present(program, f"{stack.name}.norm"))
        yield from ((hook, Target(last_logits(program))) for hook in ("unembed.hook_out", "hook_unembed"))
        for i in range(stack.layers):
            layer, block = f"{stack.name}.{i}", f"blocks.{i}"
            before = f"{stack.name}.{i - 1}.output" if i else stack.entrance
            yield f"{block}.hook_resid_pre", Target(present(program, before))
            gated = bool(present(program, f"{layer}.feed_forward.gate"))
            pre = "gate" if gated else "hidden"
            yield f"{block}.mlp.hook_pre", Target(present(program, f"{layer}.feed_forward.{pre}"))
            yield f"{block}.mlp.hook_pre_linear", Target(present(program, f"{layer}.feed_forward.hidden"))
            for norm, steps in NORMALISED.items():
                yield from _norm(f"{block}.{norm}", present(program, *(f"{layer}.{step}" for step in steps)))
            for hook, steps in HOOKS.items():
                targets = present(program, *(f"{layer}.{step}" for step in steps))
                yield f"{block}.{hook}", Target(targets)


def _norm(hooks: str, steps: tuple[str, ...]) -> Iterator[tuple[str, Target]]:
    yield f"{hooks}.hook_out", Target(steps)
    yield f"{hooks}.hook_normalized", Target(steps, unless=f"{hooks}.hook_out")


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

OUTSIDE_LAYERS = {
    "inp_embd": ("embedding.tokens", "embedding.output"),
    "inp_scaled": ("embedding.tokens",),
    "pos_embd": ("embedding.positions",),
    "inpL": ("embedding.output",),
    "inp_norm": ("embedding.norm",),
    "result_norm": ("{}.norm", "{}.norm"),
    "result_embd": ("{}.norm",),
}
"""The others; {} is the stack."""


@_for_program
def ggml(program: Program) -> Iterator[tuple[str, Target]]:
    """Tensors of the graph of llama.cpp, with the number of the layer behind a dash."""
    for stack in stacks(program)[-1:]:
        for name, steps in OUTSIDE_LAYERS.items():
            yield name, Target(present(program, *(step.format(stack.name) for step in steps)))
        yield "result_output", Target(last_logits(program))
        for i in range(stack.layers):
            for name, steps in TENSORS.items():
                base, _, op = name.partition("-")
                targets = present(program, *(f"{stack.name}.{i}.{step}" for step in steps))
                yield f"{base}-{i}{f' ({op})' if op else ''}", Target(targets, paired=base in PAIRED)
