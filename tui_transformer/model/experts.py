"""A feed-forward layer of experts: a router chooses a few of them for every token (Shazeer et al. 2017)."""

from __future__ import annotations

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Add, ExpertWeights, Linear, OfExpert, Op, Sigmoid, WeightedExperts
from tui_transformer.engine.program import Builder
from tui_transformer.model.description import Experts, FeedForward
from tui_transformer.model.layers import feed_forward, matrix


def experts(build: Builder, x: str, how: Experts) -> str:
    """Σ share · expert(x) over the chosen experts, and the shared expert beside them, where there is one."""
    router = _router(build, x, Axis("expert", how.count), bias=how.router_bias)  # n × d → n × experts
    shares = build("expert_weights", ExpertWeights(how.chosen, how.among_chosen), router)
    each = build.within("experts")
    said = [_expert(each.within(str(number)), x, shares, number, how) for number in range(how.count)]
    together = WeightedExperts(how.chosen)
    if how.shared is None:
        return build("output", together, shares, *said)
    chosen, shared = each("output", together, shares, *said), _shared(build.within("shared"), x, how.shared)
    return build("output", Add("experts + shared"), chosen, shared)


def _router(build: Builder, x: str, axis: Axis, *, bias: bool = False) -> str:
    biased = frozenset({"router"} if bias else ())
    return build("router", Linear("x W_r"), x, *matrix(build, "router", x, axis, biased))


def _expert(build: Builder, x: str, shares: str, number: int, how: Experts) -> str:
    """One expert, computed for the tokens that chose it."""

    def step(name: str, op: Op, *inputs: str) -> str:
        rows = sum(each not in build.weights for each in inputs)
        return build(name, OfExpert(op, number, how.chosen, rows), *inputs, shares)

    return feed_forward(build, x, how.each, step)


def _shared(build: Builder, x: str, how: FeedForward) -> str:
    """The expert of all tokens, times a share that it gets for itself alone (Qwen Team 2024)."""
    said = feed_forward(build, x, how)
    share = build("expert_weights", Sigmoid(), _router(build, x, Axis("expert", 1)))
    return build("weighted", WeightedExperts(1), share, said)
