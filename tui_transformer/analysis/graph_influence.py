"""The influence of nodes on the logits: what pruning keeps of a graph, and how much of it features explain.

With N_ts = |A_ts| ÷ Σ_s |A_ts| of the edges A and the probabilities p of the logits, influence = p (N + N² + …). Graphs
are pruned and scored as circuit-tracer does (github.com/safety-research/circuit-tracer): of nodes, then of edges, those
stay that make up a share of all influence; replacement = the influence of tokens ÷ that of tokens and errors;
completeness = the mean share of a node's inputs that are no errors, weighted by influence (a node without inputs counts
as 1).
"""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.backend import Host


def shares_of(weights: Host) -> Host:
    """The shares |A_ts| ÷ Σ_s |A_ts|; 0 where nothing comes in."""
    size = np.abs(weights, dtype=np.float64)
    total = size.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(size, total, out=np.zeros_like(size), where=total > 0.0))


def influence_of(shares: Host, followed: Host, start: Host) -> Host:
    """The sum start (N + N² + …), N with rows of the nodes that are followed; it ends, as sources come first."""
    total, now = np.zeros(len(start)), start
    for _ in range(len(followed) + 1):
        now = now[followed] @ shares
        total += now
        if not now.any():
            break
    return total


def _threshold(scores: Host, share: float) -> float:
    """The score of the last that is needed for a share of their sum, the largest first."""
    ordered = np.sort(scores)[::-1]
    total = ordered.sum()
    if not total:
        return 0.0
    place = int(np.searchsorted(np.cumsum(ordered) / total, share))
    return float(ordered[min(place, len(ordered) - 1)])


def kept_of(
    weights: Host, followed: Host, influence: Host, start: Host, always: Host, nodes: float, edges: float
) -> tuple[Host, Host]:
    """Which nodes and edges make up these shares; what then leads nowhere, or comes from nowhere, is not kept."""
    kept = (influence >= _threshold(influence, nodes)) | always
    shares = shares_of(np.where(kept[followed][:, None] & kept, weights, 0.0))
    scores = shares * (influence_of(shares, followed, start) + start)[followed][:, None]
    there = (scores >= _threshold(scores.reshape(-1), edges)) & (shares > 0.0)
    before = -1
    while before != kept.sum():
        before = int(kept.sum())
        there &= kept[followed][:, None] & kept
        into = np.ones(len(kept), np.bool_)
        into[followed] = there.any(axis=1)
        kept &= (there.any(axis=0) & into) | always
    return kept, there


def cumulative_of(influence: Host) -> Host:
    """The share of all influence that the nodes up to each have, the strongest first."""
    order = np.argsort(-influence, kind="stable")
    found = np.zeros(len(influence))
    found[order] = np.cumsum(influence[order]) / (influence.sum() or 1.0)
    return np.minimum(found, 1.0)  # rounding may go beyond, and viewers leave out what is above a threshold of 1


def scores_of(
    shares: Host, followed: Host, influence: Host, start: Host, tokens: Host, errors: Host
) -> tuple[float, float]:
    """Replacement and completeness."""
    from_tokens, from_errors = influence[tokens].sum(), influence[errors].sum()
    explained = np.ones(len(influence))
    explained[followed] -= shares[:, errors].sum(axis=1)
    reached = influence + start
    replacement = from_tokens / (from_tokens + from_errors) if from_tokens + from_errors else 0.0
    return float(replacement), float((explained * reached).sum() / reached.sum()) if reached.any() else 0.0
