"""The hooks of TransformerLens: `blocks.0.attn.hook_q`, `hook_pattern`, `hook_resid_post`."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.diagnosis.naming.name import Table, Target, present, stacks, table
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

HOOKS = {
    "hook_resid_mid": ("self_attention.residual",),
    "hook_attn_out": ("self_attention.output",),
    "hook_mlp_out": ("feed_forward.output",),
    "hook_resid_post": ("output", "feed_forward.residual"),
    "ln1.hook_normalized": ("self_attention.norm",),
    "ln2.hook_normalized": ("feed_forward.norm",),
    "ln1_post.hook_normalized": ("self_attention.norm", "self_attention.post_norm"),
    "ln2_post.hook_normalized": ("feed_forward.norm", "feed_forward.post_norm"),
    "attn.hook_q": ("self_attention.query", "self_attention.query_norm"),
    "attn.hook_k": ("self_attention.key", "self_attention.key_norm"),
    "attn.hook_v": ("self_attention.value",),
    "attn.hook_rot_q": ("self_attention.query_rotated",),
    "attn.hook_rot_k": ("self_attention.key_rotated",),
    "attn.hook_attn_scores": ("self_attention.masked", "self_attention.scaled"),
    "attn.hook_pattern": ("self_attention.weights",),
    "attn.hook_z": ("self_attention.context",),
    "mlp.hook_post": ("feed_forward.gated", "feed_forward.activation"),
}
"""Hooks of a block → steps of a layer. Scores are masked and divided before their hook."""


def transformer_lens(model: Model, program: Program) -> Table:
    """Hooks of the whole model and of every block."""
    del model
    return table(_names(program))


def _names(program: Program) -> Iterator[tuple[str, Target]]:
    for stack in stacks(program)[-1:]:
        yield "hook_embed", Target(present(program, "embedding.tokens"))
        yield "hook_pos_embed", Target(present(program, "embedding.positions"))
        yield "hook_full_embed", Target(present(program, "embedding.output"))
        yield "ln_final.hook_normalized", Target(present(program, f"{stack.name}.norm"))
        for i in range(stack.layers):
            layer, block = f"{stack.name}.{i}", f"blocks.{i}"
            before = f"{stack.name}.{i - 1}.output" if i else stack.entrance
            yield f"{block}.hook_resid_pre", Target(present(program, before))
            gated = bool(present(program, f"{layer}.feed_forward.gate"))
            pre = "gate" if gated else "hidden"
            yield f"{block}.mlp.hook_pre", Target(present(program, f"{layer}.feed_forward.{pre}"))
            yield f"{block}.mlp.hook_pre_linear", Target(present(program, f"{layer}.feed_forward.hidden"))
            for hook, steps in HOOKS.items():
                found = present(program, *(f"{layer}.{step}" for step in steps))
                yield f"{block}.{hook}", Target(found)
