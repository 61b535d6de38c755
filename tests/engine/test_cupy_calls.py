"""Every call that the engine makes on a device is one that the installed CuPy takes. It needs no GPU for that."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from op_cases import CASES
from reference import in_float64
from strict import METHODS, Array, Module, strict_backend

import tui_transformer
from tui_transformer.engine.backend import find_gpu
from tui_transformer.engine.edits import Ablate, Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.weights import Weights
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
special = pytest.importorskip("cupyx.scipy.special", reason="CuPy is not installed")

PACKAGE = Path(tui_transformer.__file__).parent
IDS = [[2, 5, 3, 6, 4], [7, 3, 3, 1, 1]]
OF_UFUNCS = {"out", "dtype", "casting"}
"""Keywords that CuPy's elementwise functions take; `where` is none of them."""


class Call(NamedTuple):
    """A function of the module, or a method of an array, with how many arguments and which keywords it was called."""

    owner: str
    name: str
    positional: int
    keywords: frozenset[str]


@contextmanager
def recorded() -> Iterator[set[Call]]:
    """The calls that are made inside."""
    calls: set[Call] = set()
    with pytest.MonkeyPatch.context() as patch:
        for name in vars(Module):
            function = getattr(Module, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                patch.setattr(Module, name, staticmethod(_noted(calls, "module", name, function)))
        for name in METHODS:
            patch.setattr(Array, name, _method(calls, name, getattr(Array, name)))
        yield calls


def _noted(calls: set[Call], owner: str, name: str, function: Any) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        calls.add(Call(owner, name, len(args), frozenset(options)))
        return function(*args, **options)

    if hasattr(function, "at"):
        call.at = _noted(calls, owner, f"{name}.at", function.at)  # type: ignore[attr-defined]
    return call


def _method(calls: set[Call], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Array, *args: Any, **options: Any) -> Any:
        calls.add(Call("array", name, len(args), frozenset(options)))
        return function(self, *args, **options)

    return call


@pytest.fixture(scope="module")
def calls() -> set[Call]:
    """The calls of every operation, forward and backward, and of traces, edits, gradients and writing."""
    with recorded() as made:
        for name in CASES:
            of_operation(name)
        for name in ("encoder", "decoder", "encoder-decoder"):
            of_model(name)
    return made


def of_operation(name: str) -> None:
    case, backend = CASES[name](np.random.default_rng(3)), strict_backend()
    inputs = case.on(backend)
    output = case.op.forward(backend, *inputs)
    case.op.backward(backend, backend.floats(np.ones(output.shape)), output, *inputs)


def of_model(name: str) -> None:
    model = in_float64(name)
    model = replace(model, weights=Weights(strict_backend(), model.weights.read))
    options = {"decoder_ids": IDS} if model.has_decoder else {}
    trace = model.trace(ids=IDS, **options)
    scope = "encoder" if name == "encoder" else "decoder"
    context = f"{scope}.0.self_attention.context"
    region = tuple(range(1) for _ in trace.program.shape(context))
    edits = [Ablate(context, region, mean=True), Edit(f"{scope}.0.feed_forward.hidden", (0, 1), 0.5)]
    for each in (trace, replace(model.trace(ids=IDS, budget=0, **options), block=8), trace.edited(edits)):
        each.to_dict()
    single = model.trace(ids=IDS[:1], **({"decoder_ids": IDS[:1]} if model.has_decoder else {}))
    single.edited_each([edits, edits[:1]]).to_dict()
    gradients(trace, [[5, 3, -1, 4, 0], [1, 2, 3, -1, -1]])
    if name != "encoder":
        writer = Writer(model, Settings(max_new_tokens=3), Rules(), (5, 6, 7) if model.has_decoder else ())
        list(writer.run(writer.begin((5, 6))))


def test_every_function_and_method_takes_how_it_is_called(calls: set[Call]) -> None:
    made = {call for call in calls if call.owner == "module"}
    assert len(made) > 40
    assert [call for call in sorted(made, key=str) if not takes(call)] == []
    made = {call for call in calls if call.owner == "array"}
    assert len(made) > 10
    assert [call for call in sorted(made, key=str) if not fits(documented(call.name), call)] == []


def takes(call: Call) -> bool:
    """Whether CuPy's function of this name has such arguments and keywords."""
    if call.name == "add.at":
        return callable(cupy.add.at) and call.positional == 3 and not call.keywords
    function = getattr(cupy, call.name, None)
    if isinstance(function, cupy.ufunc):
        return call.positional <= function.nargs and call.keywords <= OF_UFUNCS
    return function is not None and fits(inspect.signature(function), call)


def fits(signature: inspect.Signature, call: Call) -> bool:
    try:
        signature.bind(*range(call.positional), **dict.fromkeys(call.keywords))
    except TypeError:
        return False
    return True


def documented(name: str) -> inspect.Signature:
    """The signature of a compiled method, which stands in the first line of its description."""
    line = (getattr(cupy.ndarray, name).__doc__ or "").strip().splitlines()[0]
    parameters = re.search(r"\(self,? ?(.*?)\)(?: ->|$)", line)
    assert parameters is not None, line
    words = [part.split("=")[0].split()[-1] for part in filter(None, parameters[1].split(", "))]
    return inspect.Signature(_parameter(word, after=words[0].startswith("*")) for word in words)


def _parameter(word: str, *, after: bool) -> inspect.Parameter:
    """One of these, `after` those of any number."""
    if word.startswith("*"):
        return inspect.Parameter(word[1:], inspect.Parameter.VAR_POSITIONAL)
    kind = inspect.Parameter.KEYWORD_ONLY if after else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(word, kind, default=None)


@pytest.mark.parametrize(
    "call",
    [
        Call("module", "exp", 1, frozenset({"where"})),
        Call("module", "take", 2, frozenset({"axis", "mode"})),
        Call("module", "einsum_path", 2, frozenset()),
        Call("module", "minimum", 4, frozenset()),
    ],
    ids=lambda call: f"{call.name}-{call.positional}-{'-'.join(sorted(call.keywords))}",
)
def test_what_cupy_does_not_know_is_refused(call: Call) -> None:
    assert not takes(call)
    assert not fits(documented("sum"), Call("array", "sum", 0, frozenset({"where"})))


def test_every_name_that_is_read_from_the_module_is_there_and_called_on_the_stand_in(calls: set[Call]) -> None:
    missing = []
    for name, place in read_from_module():
        try:
            attrgetter(name)(cupy)
        except AttributeError:
            missing.append((name, place))
    assert missing == []
    called = {call.name.partition(".")[0] for call in calls}
    engine = {name for name, place in read_from_module() if place.startswith("engine/")}
    assert engine - called - {"float64", "inf"} == set()
    assert (special.erf.nin, special.erf.nout) == (1, 1)


def read_from_module() -> Iterator[tuple[str, str]]:
    """Names behind `xp.` in the program, and where."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] == "xp":
                yield node.attr, f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_the_search_for_a_gpu_says_in_one_line_what_it_found() -> None:
    gpu = find_gpu()
    assert len(gpu.finding.splitlines()) == 1
    assert gpu.finding.startswith("CuPy ") == (gpu.cupy is not None) or "CuPy sees no GPU" in gpu.finding
