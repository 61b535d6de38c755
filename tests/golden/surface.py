"""What of the program is a table: the help of every command, the keys, the names of the library and what they give."""

from __future__ import annotations

import dataclasses
import inspect
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import tui_transformer
from tests.golden.program import alone, masked, run
from tests.golden.store import Cases
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.actions import SCREENS
from tui_transformer.explorer.shell.actions.main import FOCUSED
from tui_transformer.explorer.shell.keys import KEYS, Action
from tui_transformer.model import Model

PAGE = Path(tui_transformer.__file__).parent / "LIBRARY.md"


def helps(part: str = "") -> Cases:
    """The help of every command, found in the help of the one above it."""
    with alone():
        return {name: said for name, said in _helps(()) if part in name}


def _helps(command: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    said = run([*command, "--help"]).out.rstrip("\n")
    yield " ".join(("tui-transformer", *command)), said
    below = said.partition("\nCommands:\n")[2]
    for name in re.findall(r"^  ([a-z][\w-]*)", below, re.MULTILINE):
        yield from _helps((*command, name))


def keys(part: str = "") -> Cases:
    """Every meaning with its keys, and every screen's actions: meaning, keys, what is said of them."""
    every = {"meanings": "\n".join(f"{name} · {given}" for name, given in KEYS.items())}
    every |= {f"screen {name}": _actions(actions) for name, actions in SCREENS.items()}
    every |= {f"key line of {name}": _actions(actions) for name, actions in FOCUSED.items()}
    return {name: said for name, said in every.items() if part in name}


def _actions(actions: Iterable[Action]) -> str:
    return "\n".join(
        " · ".join((each.id or "–", each.keys if each.id else each.of, each.title, each.short, each.shown))
        for each in actions
    )


def names(part: str = "") -> Cases:
    """Every public name with its signature; of a class also those of its public members."""
    every = {name: "\n".join(_signatures(name, getattr(tui_transformer, name))) for name in tui_transformer.__all__}
    return {name: said for name, said in every.items() if part in name}


def _signatures(name: str, value: Any) -> Iterator[str]:
    if not callable(value):
        yield f"{name} = {value!r}"
        return
    yield f"{name}{_signature(value)}"
    if inspect.isclass(value):
        yield from (f"  a {base.__name__}" for base in value.__mro__[1:-1] if base.__module__ == "builtins")
        members = {member: found for base in value.__mro__[:-1] for member, found in vars(base).items() if _ours(base)}
        for member, found in sorted(members.items()):
            if not member.startswith("_"):
                yield f"  {member}{_member(value, member, found)}"


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("tui_transformer")


def _member(kind: type, name: str, found: Any) -> str:
    shown = getattr(kind, name, found)
    return f" ({type(found).__name__}){_signature(shown)}" if callable(shown) else f" ({type(found).__name__})"


def _signature(value: Any) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def examples(part: str = "") -> Cases:
    """What the examples of the library's page print, in float64."""
    text = PAGE.read_text(encoding="utf-8")
    sections = {each.split("\n", 1)[0].strip("# "): each for each in re.split(r"^## ", text, flags=re.MULTILINE)}
    return {title: _printed(section) for title, section in sections.items() if part in title}


def _printed(section: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    code = re.sub(r'Model\.load\(("\w+")\)', r'Model.load(\1, dtype="float64")', "\n".join(blocks))
    with alone() as here, redirect_stdout(io.StringIO()) as said:
        exec(code, {})  # noqa: S102 - the project's own text
    return masked(said.getvalue().rstrip("\n"), here)


RESULTS = (
    "Model.load('story').encode('The fox').ids",
    "attentions(trace.program)",
    "attribute(trace, 5)",
    "list(circuits(trace))[:2]",
    "list(compositions(list(circuits(trace)), 'Q'))[:3]",
    "list(effects(trace, 'layer'))",
    "effect(trace, trace.edited([zero]))",
    "effects_of(trace, [zero, [zero, Scale('1.output', 2.0)]], metric=metric)",
    "every(trace.program, 'head')[:3]",
    "figure(trace, '0.self_attention.weights', head=1)",
    "fit_lens([trace, other])",
    "generate(model, 'The fox', max_new_tokens=6)",
    "gradient_times_input(trace, metric)",
    "gradients(trace, [[5, 6, 7, 8]]).loss",
    "gradients_of(trace, metric).values['embedding.output']",
    "gradients_of_cell(trace, '1.output', (0, 2)).values['embedding.output']",
    "graph(trace).prune(0.6, 0.6).rows()[:2]",
    "list(head_lens(trace, row=1))[:2]",
    "integrated_gradients(trace, metric, points=4)",
    "list(logit_lens(trace, top=2))[:2]",
    "list(effects(trace, 'layer', metric=lambda trace: trace['1.output'][2, 0]))[:2]",
    "list(effects(trace, 'layer', metric=OfLogits(lambda logits: logits.max())))[:2]",
    "means([trace], ['0.output'])",
    "measure_texts(model, ['The fox .', 'A crow .'], ['first'])",
    "metric.measure(trace)",
    "paths(trace, other, metric=metric)",
    "paths(trace, other, 'head', ['value', 'logits'], metric, by='gradient').rows()[-2:]",
    "rollout(trace)",
    "list(sweep(trace, other, 'layer', metric))[:3]",
    "table_of(trace.program, 'head')",
    "words_of(trace)",
    "trace.explain('0.self_attention.scaled', head=1, row=2, column=1)",
    "trace",
    "trace.edited([Patch.between(trace, other, '0.output')])['output.logits']",
    "trace.edited([Edit('0.output', (1, 2), 0.5)])['output.logits']",
    "trace.edited([Add('0.output', 0.5), Scale('1.output', 2.0)])['output.logits']",
    "trace.edited([Ablate('0.self_attention.context', (range(1), range(5), range(20)))])['output.logits']",
)
"""Expressions of a trace, another one, a metric and an edit, with all public names."""


def results(part: str = "") -> Cases:
    """What the public functions give."""
    model = Model.load("story", dtype="float64")
    trace, other = (model.trace(text) for text in ("The fox found", "The crow saw"))
    known = {name: getattr(tui_transformer, name) for name in tui_transformer.__all__}
    known |= {"model": model, "trace": trace, "other": other, "metric": known["Metric"]("difference", (5, 9))}
    known["zero"] = known["Set"]("0.self_attention.context", 0.0, heads=0)
    with alone() as here:
        return {each: masked(_result(each, known), here) for each in RESULTS if part in each}


def _result(expression: str, known: dict[str, Any]) -> str:
    try:
        value = eval(expression, known)  # noqa: S307 - of the table above
    except Exception as error:  # noqa: BLE001 - what it says is the result
        return f"{type(error).__name__}: {error}"
    return "\n".join(described(value))


def described(value: Any, deep: int = 0) -> Iterator[str]:
    """A result as lines: fields by name, arrays by shape and some numbers."""
    space = "  " * deep
    if isinstance(value, np.ndarray | np.generic) and getattr(value, "size", 1) > 1:
        flat = np.asarray(value, dtype=np.float64).ravel()
        some = " ".join(f"{x:.5g}" for x in (np.abs(flat).mean(), flat[0], flat[len(flat) // 2], flat[-1]))
        yield f"{space}{value.dtype} {value.shape}: {some}"
    elif isinstance(value, float | np.generic):
        yield f"{space}{value:.8g}" if isinstance(value, float | np.floating) else f"{space}{value}"
    elif isinstance(value, Trace | str | int | None) or deep > 5:
        yield f"{space}{re.sub(r' at 0x[0-9a-f]+', '', str(value))}"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield f"{space}{type(value).__name__}"
        for each in dataclasses.fields(value):
            if not each.name.startswith("_"):
                yield f"{space}  {each.name}:"
                yield from described(getattr(value, each.name), deep + 2)
    elif isinstance(value, Mapping):
        for name, found in list(value.items())[:8]:
            yield f"{space}{name}:"
            yield from described(found, deep + 1)
    elif isinstance(value, Sequence) and not isinstance(value, range):
        yield f"{space}{len(value)} of them"
        for found in value[:4]:
            yield from described(found, deep + 1)
    else:
        yield f"{space}{type(value).__name__}: {re.sub(r' at 0x[0-9a-f]+', '', str(value))[:2000]}"


__all__ = ["examples", "helps", "keys", "names", "results"]
