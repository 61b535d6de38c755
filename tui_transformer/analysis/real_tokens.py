"""Real tokens: which tokens of a sentence are not padding."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace

VISIBLE = "input.visible"


def real_tokens(trace: Trace, axis: Axis, item: int = 0) -> Host:
    """True for every token along an axis that is not padding; all of them where there is nothing but padding."""
    real: Host = np.ones(axis.size, dtype=np.bool_)
    for name, array in trace.givens.items():
        if name.endswith(VISIBLE) and trace.program.axes(name)[0].sequence == axis.sequence and array[item].any():
            real = array[item]
    return real
