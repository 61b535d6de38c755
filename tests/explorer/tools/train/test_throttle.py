"""Drawing takes a small share of the time, however long it takes."""

from __future__ import annotations

import pytest

from tui_transformer.explorer.tools.train.panel import LEAST, MOST, SHARE, Throttle


@pytest.mark.parametrize(("cost", "wait"), [(0.0, LEAST), (0.02, 0.02 / SHARE), (10.0, MOST)])
def test_the_next_drawing_waits_for_its_share_of_the_time(cost, wait):
    now, spent = [0.0], [0.0]
    throttle = Throttle(lambda: now[0], lambda: spent[0])
    assert throttle.due()
    spent[0] += cost
    now[0] = wait - 0.001
    assert not throttle.due()
    now[0] = wait + 0.001
    assert throttle.due()
