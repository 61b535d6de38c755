"""Experts: which ones every token chose, and how many tokens each of them got.

The load of an expert is the number of real tokens (no padding) that chose it; with k chosen experts a token, the loads
of a layer add up to k times the tokens. Even load is tokens · k ÷ experts (Shazeer et al. 2017, §4, balance it with a
loss; Fedus et al. 2022, "Switch Transformers", §2.2).
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import ExpertWeights
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass


@dataclass(frozen=True, eq=False)
class ExpertLoad:
    """The experts of one layer, named by the step of the shares.

    Each token has `chosen` of them, with its `shares` (n × experts, 0 where it was not chosen); `real` tokens are no
    padding.
    """

    step: str
    chosen: int
    shares: Host
    real: Host

    @property
    def tokens(self) -> tuple[int, ...]:
        """How many real tokens chose every expert."""
        return tuple(np.count_nonzero(self.shares[self.real], axis=0).tolist())

    @property
    def mean_shares(self) -> tuple[float, ...]:
        """The mean share of every expert over the real tokens that chose it; NaN where none did."""
        counts = np.array(self.tokens, dtype=np.float64)
        sums = self.shares[self.real].sum(axis=0, dtype=np.float64)
        return tuple(np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0).tolist())

    @property
    def even(self) -> float:
        """The load if every expert got as many tokens."""
        return float(self.chosen * self.real.sum() / self.shares.shape[-1])

    def of_token(self, token: int) -> tuple[tuple[int, float], ...]:
        """The experts that a token chose and their shares, the largest first."""
        row = self.shares[token]
        order = np.argsort(-row, kind="stable")[: int(np.count_nonzero(row))]
        return tuple((int(expert), float(row[expert])) for expert in order)


def expert_steps(program: Program) -> tuple[Step, ...]:
    """The shares of the experts of every layer that has some, in order."""
    return tuple(step for step in program.steps if isinstance(step.op, ExpertWeights))


def expert_step(program: Program, name: str) -> Step | None:
    """The shares that a step of the same feed-forward layer is about: its router, or themselves; None for others."""
    steps = {place: each for each in expert_steps(program) for place in (each.name, each.inputs[0])}
    return steps.get(program.aliases.get(name, name))


def expert_load(trace: Trace, step: Step) -> ExpertLoad:
    """The experts that every token chose in a layer."""
    op = step.op
    assert isinstance(op, ExpertWeights)  # noqa: S101 - as `expert_steps` gives them
    shares = trace.source(step.name)
    values = shares.read(tuple(map(range, shares.shape)))
    return ExpertLoad(step.name, op.chosen, values, real_tokens(trace, step.axes[0]))
