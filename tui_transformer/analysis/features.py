"""The active features of tokens: how strong they are, what they leave of what is there, and which words they raise.

With y what a dictionary is to give at a token, f its features and W their decoder rows, the strongest r of them write
ŷ_r = ŷ(0) + Σ f_i W_i. What they leave is ‖y − ŷ_r‖ ÷ ‖y‖, with all of them ‖e‖ ÷ ‖y‖ of the error e.

The words of a feature: f_i W_i, carried from where it is written to the logits with the norms on the way frozen, less
the mean over all words: what the feature adds to every logit directly, from all layers that it writes into (as
`analysis/head_lens.py` has it of heads;
Bricken et al. 2023, "Towards Monosemanticity", §"Feature effects"; Elhage et al. 2021 for the frozen norms).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.attribution import passed
from tui_transformer.analysis.circuits import in_float64
from tui_transformer.analysis.head_lens import carried
from tui_transformer.analysis.measurable import at_least, logits_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import FromSize
from tui_transformer.engine.ops.base import EXACT
from tui_transformer.engine.program import Program
from tui_transformer.engine.targets import FEATURES, KINDS
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class ActiveFeature:
    """A feature at a token: its number, its place from the strongest on (from 1; 0 where it is not active), its value.

    `left`: ‖y − ŷ_r‖ ÷ ‖y‖ with it and all stronger ones that are listed; NaN where y is 0.
    """

    feature: int
    rank: int
    value: float
    left: float


@dataclass(frozen=True, eq=False)
class ActiveFeatures:
    """The strongest features of a token.

    Attributes:
        at: The step that the dictionary reads.
        token: From 0.
        active: How many features are not 0.
        error: What all of them leave: ‖e‖ ÷ ‖y‖; NaN where y is 0.
        features: The strongest first, or those that were asked for in their order.
        written: What each of them writes, f_i W_i: features × d, float64.
    """

    at: str
    token: int
    active: int
    error: float
    features: tuple[ActiveFeature, ...]
    written: Host


def places_of_features(program: Program) -> tuple[str, ...]:
    """The steps that dictionaries read, in order; those of `AT.features`."""
    return tuple(KINDS["feature"].places(program))


def active_features(
    trace: Trace,
    at: str | None = None,
    top: int = 5,
    *,
    features: Sequence[int] = (),
    tokens: range | int | None = None,
    item: int | None = None,
) -> Iterator[ActiveFeatures]:
    """The features of every token, the strongest first.

    Args:
        trace: Of a model with features (`Model.with_features`).
        at: The step that the dictionary reads; by default the only one.
        top: How many of each token, as far as they are active.
        features: These instead, active or not.
        tokens: Only these, or this one: −1 is the last.
        item: Which sentence of a batch.

    Raises:
        InputError: There are no such features or tokens.
    """
    at_least(0, top=top)
    own, item = _place(trace.program, at), item_of(trace, item)
    rows, count = trace.program.shape(own + FEATURES)
    if isinstance(tokens, int | np.integer):
        first = tokens + rows if -rows <= tokens < 0 else tokens
        tokens = range(first, first + 1)
    tokens = range(rows) if tokens is None else tokens
    if not 0 <= tokens.start <= tokens.stop <= rows:
        raise InputError(f"there is no token {max(tokens.stop - 1, tokens.start)}: tokens are 0 to {rows - 1}")
    wanted = tuple(features)
    wrong = next((feature for feature in wanted if not 0 <= feature < count), None)
    if wrong is not None:
        raise InputError(f"there is no feature {wrong}: features are 0 to {count - 1}")
    return _of_tokens(trace, own, tokens, top, wanted, item)


def _place(program: Program, at: str | None) -> str:
    places = places_of_features(program)
    if not places:
        raise InputError("the model has no features: Model.with_features gives it some")
    if at is None and len(places) > 1:
        raise InputError(f"there are features at {', '.join(places)}: name one of them")
    own = places[0] if at is None else program.step(f"{at}{FEATURES}").name.removesuffix(FEATURES)
    if own not in places:
        raise InputError(f"there are no features at {at}: there are at {', '.join(places)}")
    return own


def _of_tokens(
    trace: Trace, at: str, tokens: range, top: int, wanted: Sequence[int], item: int
) -> Iterator[ActiveFeatures]:
    """Token by token, as many read together as fit into a block."""
    program, place = trace.program, f"{at}.reconstruction"
    product = program.by_name.get(f"{place}.written") or program.step(place)
    (weight, *biases), width = product.inputs[1:], product.shape[-1]
    sizes = (step for step in program.steps if isinstance(step.op, FromSize) and step.name.startswith(place))
    sized = next(sizes, None)  # where what is written is taken back to the size of what was read
    names = [at + FEATURES, f"{at}.error", program.step(f"{at}.error").inputs[0], product.name]
    names += () if sized is None else [sized.inputs[1]]
    bias = sum(in_float64(trace, name, (range(width),)) for name in biases)
    height = max(1, trace.block // program.shape(at + FEATURES)[-1])
    for some in (tokens[start : start + height] for start in range(0, len(tokens), height)):
        regions = ((name, (some, range(program.shape(name)[-1]))) for name in names)
        blocks = (np.asarray(trace.window(name, region, item), np.float64) for name, region in regions)
        for token, values, error, y, own, *read in zip(some, *blocks, strict=True):
            order = np.argsort(-np.abs(values), kind="stable")
            order = order[values[order] != 0.0]
            chosen = np.array(wanted, dtype=np.int64) if wanted else order[:top]
            rows = [in_float64(trace, weight, (range(i, i + 1), range(width)))[0] for i in chosen.tolist()]
            written, every = np.array(rows).reshape(-1, width) * values[chosen][:, None], own - bias
            if sized is not None:
                x = read[0][None]
                none = sized.op.forward(EXACT, np.zeros_like(x), x)
                written, every = (sized.op.forward(EXACT, each, x) - none for each in (written, every[None]))
            size = float(np.linalg.norm(y)) or np.nan
            left = np.linalg.norm(error + every - np.cumsum(written, axis=0), axis=1) / size
            ranks = {int(feature): rank for rank, feature in enumerate(order, 1)}
            found = (
                ActiveFeature(number, ranks.get(number, 0), float(values[number]), float(rest))
                for number, rest in zip(chosen.tolist(), left, strict=True)
            )
            yield ActiveFeatures(at, token, len(order), float(np.linalg.norm(error)) / size, tuple(found), written)


def feature_words(
    trace: Trace, found: Sequence[ActiveFeatures], item: int | None = None, report: Report = silent
) -> Iterator[Host]:
    """What features add to the logits of their token, less the mean over all words: features × words, float64.

    Args:
        trace: That they are of.
        found: What `active_features` gives of neighbouring tokens.
        item: Which sentence of a batch.
        report: Told how far the work is; what it raises ends it.

    Raises:
        InputError: The model has no logits of words, or what the features write does not go to them by sums and norms.
    """
    words = trace.program.shape(logits_of(trace.program, "no feature spells any"))[-1]
    item, most = item_of(trace, item), max((len(each.features) for each in found), default=0)
    height = max(1, trace.block // (words * max(most, 1)))
    for start in range(0, len(found) if most else 0, height):
        report(f"words of features · token {start + 1:,} of {len(found):,}")
        some = found[start : start + height]
        rows = range(some[0].token, some[-1].token + 1)
        vectors = np.zeros((most, len(rows), some[0].written.shape[1]))
        for each in some:
            vectors[: len(each.features), each.token - rows.start] = each.written
        logits: Host = np.zeros(())
        for place, written in ((some[0].at, vectors), *_further(trace, some, (most, len(rows)))):
            name = f"{place}.output" if f"{place}.output" in trace.program.by_name else f"{place}.reconstruction"
            logits = logits + carried(trace, name, passed(trace, name, written, rows, item), rows, item)
        logits -= logits.mean(axis=-1, keepdims=True)
        yield from (logits[: len(each.features), each.token - rows.start] for each in some)


def _further(trace: Trace, found: Sequence[ActiveFeatures], shape: tuple[int, int]) -> Iterator[tuple[str, Host]]:
    """Where features of a cross-layer transcoder write beside their own layer, and what: features × tokens × d."""
    for step in trace.program.readers(found[0].at + FEATURES):
        place, is_further, _ = step.name.partition(".reconstruction.from_")
        if is_further:
            vectors = np.zeros((*shape, step.shape[-1]))
            for each in found:
                for at, one in enumerate(each.features):
                    region = range(one.feature, one.feature + 1), range(step.shape[-1])
                    vectors[at, each.token - found[0].token] = one.value * in_float64(trace, step.inputs[1], region)[0]
            yield place, vectors
