"""Every key of every family's config.json, against transformers where that is installed."""

from __future__ import annotations

import pytest
from every_key import REFERENCES, differences

FAMILIES = sorted(path.parent.name for path in REFERENCES.glob("*/config.json") if "vanilla" not in path.parent.name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_key_is_computed_as_transformers_does_or_refused(family: str) -> None:
    pytest.importorskip("transformers")
    wrong = [f"{case}: {problem}" for case, problem in differences(family) if problem]
    assert not wrong, "\n".join(wrong)
