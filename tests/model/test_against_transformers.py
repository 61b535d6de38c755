"""Random sizes and options of every family, and every key, against transformers where that is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import random_sizes
from every_key import REFERENCES, differences
from random_cases import FAMILIES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
SCRIPT = random_sizes.__file__
FOLDERS = sorted(path.parent.name for path in REFERENCES.glob("*/config.json") if "vanilla" not in path.parent.name)


def said(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Output of the script, in a process of its own: it makes torch compute in float64 throughout."""
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=3000, check=False
    )


def test_a_few_families_are_computed_as_transformers_does():
    done = said("--cases", "1", "bert", "llama", "t5")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_computed_as_transformers_does_or_refused(family):
    done = said("--cases", "20", family)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FOLDERS)
def test_every_key_is_computed_as_transformers_does_or_refused(family: str) -> None:
    wrong = [f"{case}: {problem}" for case, problem in differences(family) if problem]
    assert not wrong, "\n".join(wrong)
