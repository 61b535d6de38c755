from __future__ import annotations

import pytest
from typed_lines import WEIGHTS

from tui_transformer.explorer.plain.reader import Reader
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position


@pytest.fixture(scope="module")
def session():
    return open_session(ModelOptions("question", device="cpu"), None, None)


@pytest.fixture
def reader(session):
    return Reader(Exploration(History(session), Position(WEIGHTS)))
