"""What several test folders share."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run beside each other: more would wait

import numpy as np
import pytest
from reference import REFERENCES, Reference


@pytest.fixture(scope="session", params=["vanilla-encoder", "vanilla-decoder", "vanilla-encoder-decoder"])
def reference(request: pytest.FixtureRequest) -> Reference:
    """Each of the reference checkpoints in turn."""
    folder = REFERENCES / request.param
    with np.load(folder / "expected.npz") as file:
        return Reference(folder, dict(file))
