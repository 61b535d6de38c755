"""The head of a step that belongs to the head of another one: keys and values may be shared by several queries."""

from __future__ import annotations

from tui_transformer.engine.program import Program, by_program

HEAD = "head"
"""The first axis of a step that has heads."""


def heads_of(program: Program, name: str) -> int:
    """Heads of a step or weight; of one without, and of a stop that is no step, those of the queries."""
    known = name in program.by_name or name in program.aliases
    return (_heads(program, name) if known else 0) or most_heads(program)


@by_program
def most_heads(program: Program) -> int:
    """Heads of the queries: the most that any step has."""
    return max((_heads(program, step.name) for step in program.steps), default=0) or 1


def head_at(program: Program, head: int, here: str, there: str) -> int:
    """The head of one step that belongs to a head of another: that of its group, or the first of the group."""
    among, of = heads_of(program, there), heads_of(program, here)
    return min(head * among // of, among - 1)


def query_head(program: Program, head: int, here: str) -> int:
    """The head of the queries that belongs to a head of a step, the first of its group."""
    return head * most_heads(program) // heads_of(program, here)


def _heads(program: Program, name: str) -> int:
    axes = program.axes(name)
    return axes[0].size if axes[0].name == HEAD else 0
