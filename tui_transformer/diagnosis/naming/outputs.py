"""Outputs of transformers with `output_hidden_states` and `output_attentions`: tuples, one array a layer."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.diagnosis.naming.name import Stack, Table, Target, last_logits, present, stacks, table
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

HIDDEN = ("hidden_states", "hidden_state", "hidden", "all_hidden_states", "hiddens")
ATTENTION = ("attentions", "attention", "attn", "attention_weights", "all_attentions", "attention_probs")


def outputs(model: Model, program: Program) -> Table:
    """Tuples by index, the last hidden state, logits."""
    del model
    return table(_names(program))


def _names(program: Program) -> Iterator[tuple[str, Target]]:
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
