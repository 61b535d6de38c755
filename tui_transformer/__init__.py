"""See every number inside a transformer, in a terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as that of `typing`, whose import would take longer than all else that `--version` does
if TYPE_CHECKING:
    from typing import Any

    from tui_transformer.analysis.attentions import attentions
    from tui_transformer.analysis.attribution import Attribution, attribute
    from tui_transformer.analysis.circuits import Circuit, circuits, compositions, words_of
    from tui_transformer.analysis.directions import Direction, direction
    from tui_transformer.analysis.effects import effect, effects, effects_of, means
    from tui_transformer.analysis.features import active_features, feature_words
    from tui_transformer.analysis.graph import graph
    from tui_transformer.analysis.graph_result import Graph
    from tui_transformer.analysis.head_lens import head_lens
    from tui_transformer.analysis.input_attribution import (
        gradient_times_input,
        gradients_of,
        gradients_of_cell,
        integrated_gradients,
    )
    from tui_transformer.analysis.logit_lens import fit_lens, logit_lens, words_at
    from tui_transformer.analysis.measurable import OfLogits
    from tui_transformer.analysis.metrics import Metric
    from tui_transformer.analysis.patching import sweep, table_of
    from tui_transformer.analysis.paths import Paths, paths
    from tui_transformer.analysis.probes import Probe, probe
    from tui_transformer.analysis.rollout import rollout
    from tui_transformer.engine.changes import Add, Apply, Project, Scale, Set
    from tui_transformer.engine.edits import Ablate, Edit, Patch
    from tui_transformer.engine.gradient import gradients
    from tui_transformer.engine.targets import Target, every
    from tui_transformer.engine.trace import Trace
    from tui_transformer.errors import InputError
    from tui_transformer.features.dictionary import Features
    from tui_transformer.generation.writing import generate
    from tui_transformer.model import Model
    from tui_transformer.survey.recorded import Recorded
    from tui_transformer.survey.recording import record
    from tui_transformer.survey.results import measure_texts

    figure: Any
    """Of `report.svg`, which is above the folders that import this file."""

if "numpy" not in sys.modules:  # its threads that wait for more products, 20 ms if not told, take a core from all else
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")  # a power of 2, in ticks of the processor

__version__ = "0.1.0"
__all__ = [
    "Ablate",
    "Add",
    "Apply",
    "Attribution",
    "Circuit",
    "Direction",
    "Edit",
    "Features",
    "Graph",
    "InputError",
    "Metric",
    "Model",
    "OfLogits",
    "Patch",
    "Paths",
    "Probe",
    "Project",
    "Recorded",
    "Scale",
    "Set",
    "Target",
    "Trace",
    "__version__",
    "active_features",
    "attentions",
    "attribute",
    "circuits",
    "compositions",
    "direction",
    "effect",
    "effects",
    "effects_of",
    "every",
    "feature_words",
    "figure",
    "fit_lens",
    "generate",
    "gradient_times_input",
    "gradients",
    "gradients_of",
    "gradients_of_cell",
    "graph",
    "head_lens",
    "integrated_gradients",
    "logit_lens",
    "means",
    "measure_texts",
    "paths",
    "probe",
    "record",
    "rollout",
    "sweep",
    "table_of",
    "words_at",
    "words_of",
]

_HOMES = {
    "engine.changes": ("Add", "Apply", "Project", "Scale", "Set"),
    "engine.edits": ("Ablate", "Edit", "Patch"),
    "engine.gradient": ("gradients",),
    "engine.targets": ("Target", "every"),
    "engine.trace": ("Trace",),
    "analysis.attentions": ("attentions",),
    "analysis.attribution": ("Attribution", "attribute"),
    "analysis.circuits": ("Circuit", "circuits", "compositions", "words_of"),
    "analysis.directions": ("Direction", "direction"),
    "analysis.effects": ("effect", "effects", "effects_of", "means"),
    "analysis.features": ("active_features", "feature_words"),
    "analysis.graph": ("graph",),
    "analysis.graph_result": ("Graph",),
    "analysis.head_lens": ("head_lens",),
    "analysis.input_attribution": (
        "gradient_times_input",
        "gradients_of",
        "gradients_of_cell",
        "integrated_gradients",
    ),
    "analysis.logit_lens": ("fit_lens", "logit_lens", "words_at"),
    "analysis.measurable": ("OfLogits",),
    "analysis.metrics": ("Metric",),
    "analysis.patching": ("sweep", "table_of"),
    "analysis.paths": ("Paths", "paths"),
    "analysis.probes": ("Probe", "probe"),
    "analysis.rollout": ("rollout",),
    "errors": ("InputError",),
    "features.dictionary": ("Features",),
    "generation.writing": ("generate",),
    "model": ("Model",),
    "report.svg": ("figure",),
    "survey.recorded": ("Recorded",),
    "survey.recording": ("record",),
    "survey.results": ("measure_texts",),
}
"""Where the public names are."""


def __getattr__(name: str) -> Any:
    """Import the public names when they are first asked for: `--version` does not wait for NumPy."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
