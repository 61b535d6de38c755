"""The hooks of TransformerLens: `blocks.0.attn.hook_q`, `hook_pattern`, `hook_resid_post`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tui_transformer.diagnosis.naming.name import Table, Target, last_logits, present, stacks, table
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

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


def transformer_lens(model: Model, program: Program) -> Table:
    """Hooks of the whole model and of every block."""
    del model
    return table(_names(program))


def _names(program: Program) -> Iterator[tuple[str, Target]]:
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
