"""Results that follow from a program alone: worked out once for each."""

from __future__ import annotations

from tui_transformer.engine.program import Program, by_program


def test_it_is_worked_out_once_for_each_program_and_what_else_is_given():
    asked = []

    @by_program
    def known(program: Program, more: int = 0) -> int:
        asked.append(more)
        return len(program.steps) + more

    first, second = Program((), {}, {}, {}), Program((), {}, {}, {})
    assert [known(first), known(first), known(first, 2), known(second), known(first, 2)] == [0, 0, 2, 0, 2]
    assert asked == [0, 2, 0]
