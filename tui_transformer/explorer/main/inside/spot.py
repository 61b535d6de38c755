"""A cell that is looked into: of a step, of a weight, or of the gradient of one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.explanation import Index, Operand
from tui_transformer.engine.gradient_explanation import GRADIENT, explain_gradient
from tui_transformer.explorer.state.session import Session
from tui_transformer.views.inside import inside_of
from tui_transformer.views.inside.parts import Inside
from tui_transformer.views.step_view import Place, index_of, place_of


@dataclass(frozen=True)
class Spot:
    """Where one looks.

    Attributes:
        name: The step or weight.
        index: Its cell.
        gradient: Whether it is the gradient that is looked into.
    """

    name: str
    index: Index
    gradient: bool = False

    @classmethod
    def at(cls, session: Session, name: str, place: Place, *, gradient: bool = False) -> Spot:
        """The cell that a view shows at a place, or the nearest that the step has."""
        axes = session.trace.program.axes(name)
        return cls(name, _inside(axes, place), gradient and name in session.gradients.values)

    @classmethod
    def of(cls, operand: Operand) -> Spot:
        """The cell that a term was read from."""
        name = operand.name.removeprefix(GRADIENT)
        return cls(name, operand.index, name != operand.name)

    def place(self, session: Session) -> Place:
        """The place in the view of the step."""
        return place_of(session.trace.program.axes(self.name), self.index)

    def moved(self, session: Session, along: int, by: int) -> Spot:
        """So many cells further along an axis, counted from the last; the same where there is none."""
        axes, place = session.trace.program.axes(self.name), len(self.index) + along
        if place < 0:
            return self
        index = list(self.index)
        index[place] = max(0, min(index[place] + by, axes[place].size - 1))
        return replace(self, index=tuple(index))

    def cost(self, session: Session) -> int:
        """About how many operations it takes to look."""
        trace = session.trace
        return trace.pending((self.name,)) if self.name in trace.program.by_name else 0

    def look(self, session: Session) -> Inside:
        """The inside of the cell."""
        trace = session.trace
        explained = None
        if self.gradient:
            explained = explain_gradient(trace, session.gradients, session.loss_targets, self.name, self.index)
        return inside_of(trace, self.name, self.index, session.labels, explained)


def _inside(axes: Axes, place: Place) -> Index:
    """The cell at a place, or the nearest."""
    return tuple(min(i, axis.size - 1) for i, axis in zip(index_of(axes, place), axes, strict=True))
