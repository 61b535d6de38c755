"""`trace`: every step of a forward pass, and where asked the gradient at each, to an NPZ file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import numpy as np
import numpy.random

from tui_transformer.analysis.tokens import VISIBLE
from tui_transformer.cli.commands.trace import Request
from tui_transformer.cli.metrics import gradients_of_chosen
from tui_transformer.cli.output import full_shape, note, runs
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.cli.session import open_session, trace_of_all
from tui_transformer.engine.backend import Host
from tui_transformer.engine.export import write_arrays
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED, Gradients, gradients
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.names import missing
from tui_transformer.engine.parts import readable
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import writing
from tui_transformer.report.export import Blocks, write_npz
from tui_transformer.session.session import Session

TOKENS, PADDING = "tokens", "padding"


def run(request: Request) -> None:
    """Write the steps that match, one at a time, under their names, and their gradients as `gradient/<name>`.

    Raises:
        InputError: No step matches, the targets do not fit, or the file cannot be written; then there is none.
    """
    _check_gradients(request)
    session = open_session(request)
    trace = trace_of_all(session)
    arrays = dict(_arrays(trace, _gradients(session, trace, request)))
    names = list(arrays) if request.steps is None else _matching(list(arrays), request.steps)
    written = (*_padding(trace, names), *((name, arrays[name]) for name in names))
    if request.out.suffix == ".safetensors":
        write_arrays(request.out, {name: _whole(array) for name, array in written})
    else:
        with writing(request.out) as file:
            write_npz(file, written)
    note(f"wrote {request.out}: {_counted(names)}, {readable(request.out.stat().st_size)}")


def _whole(array: Host | Blocks) -> Host:
    """An array in memory: a file of safetensors is written at once."""
    return np.concatenate(list(array.cells)).reshape(array.shape) if isinstance(array, Blocks) else array


def _check_gradients(request: Request) -> None:
    """Refuse half of what gradients need."""
    scalar = request.targets is not None or request.metric is not None or request.tokens is not None
    if request.gradients and not scalar:
        raise UsageError(
            "--gradients needs --targets: one token ID a position, as 7,9,-1 (-1 = not counted), --tokens or --metric"
        )
    if scalar and not request.gradients:
        raise UsageError("--targets, --tokens and --metric are what gradients are computed from: give --gradients too")


def _gradients(session: Session, trace: Trace, request: Request) -> Gradients | None:
    """Those of the loss or the metric, where they are asked for."""
    if not request.gradients:
        return None
    if request.metric is None and request.tokens is None:
        return backward(trace, parse_ids((request.targets or "").replace("−", "-"), "--targets"))
    if trace is not session.trace:
        raise UsageError("a metric is of one sentence: give one")
    return gradients_of_chosen(session, request)


def backward(trace: Trace, targets: tuple[int, ...]) -> Gradients:
    """The gradients, and one line about the loss.

    Raises:
        InputError: The model has no logits, or the targets do not fit them.
    """
    if LOGITS not in trace.program.by_name:
        raise InputError(f"this model has no {LOGITS}: without them there is no loss, and no gradients")
    positions = trace.program.shape(LOGITS)[0]
    if len(targets) != positions:
        raise InputError(
            f"--targets: {len(targets)} for {positions} positions: give one token ID for each, -1 where none is counted"
        )
    computed = gradients(trace, [targets])
    counted = sum(target != NOT_COUNTED for target in targets)
    note(f"loss {computed.loss:.7g}: mean cross-entropy in nats over {counted} of {positions} positions")
    return computed


def _padding(trace: Trace, names: Sequence[str]) -> Iterator[tuple[str, Host]]:
    visible = trace.givens.get(VISIBLE)
    if TOKENS in names and visible is not None and not visible.all():
        yield PADDING, visible if len(visible) > 1 else visible[0]


def _arrays(trace: Trace, computed: Gradients | None) -> Iterator[tuple[str, Host | Blocks]]:
    """Every key of the file, and its array; those of steps are computed when they are written."""
    yield from ((name, Blocks(full_shape(trace, name), runs(trace, name))) for name in trace.names)
    if computed is not None:
        aliases, values = trace.program.aliases, computed.values
        known = {name: values[own] for name in _named(trace) if (own := aliases.get(name, name)) in values}
        yield from ((f"{GRADIENT}{name}", array) for name, array in known.items())


def _named(trace: Trace) -> tuple[str, ...]:
    return (*trace.names, *trace.program.weights)


def _matching(names: list[str], steps: str) -> list[str]:
    """The keys that one of the patterns between commas matches.

    Raises:
        InputError: One of them matches none.
    """
    patterns = [pattern for pattern in steps.split(",") if pattern.strip()] or [steps]
    by_pattern = {pattern: {name for name in names if _matches(name, pattern.strip())} for pattern in patterns}
    for pattern, matched in by_pattern.items():
        if not matched:
            raise InputError(missing(names, pattern.strip()))
    return [name for name in names if any(name in matched for matched in by_pattern.values())]


def _matches(name: str, pattern: str) -> bool:
    """Whether a key is wanted: a pattern for a step is one for its gradient too."""
    return fnmatchcase(name, pattern) or fnmatchcase(name.removeprefix(GRADIENT), pattern)


def _counted(names: list[str]) -> str:
    gradient = sum(name.startswith(GRADIENT) for name in names)
    return f"{len(names) - gradient} steps" + (f", {gradient} gradients" if gradient else "")
