from __future__ import annotations

import pytest

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.plain.reader import Reader
from tui_transformer.explorer.state.history import History
from tui_transformer.explorer.state.opened import open_session
from tui_transformer.explorer.state.position import Position
from tui_transformer.model.options import ModelOptions

WEIGHTS = "encoder.0.self_attention.weights"


@pytest.fixture(scope="module")
def session():
    return open_session(ModelOptions("question", device="cpu"), None, None)


@pytest.fixture
def reader(session):
    return Reader(Exploration(History(session), Position(WEIGHTS)))
