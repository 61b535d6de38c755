"""Arrays that the last window was made from stay as they were, whatever is computed from them afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.axis import whole
from tui_transformer.model import Model

TEXT = "the waves crashed against the shore"
MODELS = {
    "encoder": ("encoder", {"layers": 2}),
    "decoder": ("decoder", {"norm": "pre", "activation": "gelu", "bias": True}),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_operation_writes_over_it(name: str) -> None:
    kind, sizes = MODELS[name]
    model = Model.load(kind, device="cpu", d_model=12, heads=3, d_ff=20, **sizes)
    whole_trace = model.trace(TEXT)
    overwriting = [step for step in whole_trace.program.steps if step.op.overwrites]
    assert len(overwriting) > 3
    for step in overwriting:
        source, trace = step.inputs[0], model.trace(TEXT, budget=0)
        region = whole(trace.program.shape(source))
        trace.window(source, region)  # the source is there until another window needs something else
        assert np.array_equal(trace[step.name], whole_trace[step.name]), step.name
        assert np.array_equal(trace.window(source, region), whole_trace[source]), step.name
