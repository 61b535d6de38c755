"""A training step against its own forward pass, and against PyTorch's eager step where that can be imported.

`TORCH_PYTHON` names a Python that has PyTorch; by default it is this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.learning.corpora import lines_of as made_lines
from tui_transformer.learning.data import lines_of
from tui_transformer.learning.loop import Trainer, new_trainer
from tui_transformer.learning.settings import Settings

WIDTH, HEADS, LAYERS, BATCH, LENGTH = 128, 4, 4, 32, 64
MIB = 1 << 20


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report(_memory(Path(folder)))
        for dropout in (0.0, 0.1):
            _measure(_trainer(Path(folder), dropout), dropout)


def _memory(folder: Path) -> Promise:
    """The peak of everything that was taken since before the model was there, data too."""
    tracemalloc.start()
    trainer = _trainer(folder, 0.1)
    for _ in range(2):
        trainer.advance()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    note = f"{peak / MIB:.0f} MiB, {trainer.memory / MIB:.0f} MiB were said"
    return Promise("memory of a step ÷ what is said before it", peak / trainer.memory, bound=1.0, note=note)


def _trainer(folder: Path, dropout: float) -> Trainer:
    path = folder / "story.txt"
    path.write_text("".join(f"{line}\n" for line in made_lines("story", 1000)), encoding="utf-8")
    sizes = {"d_model": WIDTH, "heads": HEADS, "layers": LAYERS}
    settings = Settings(
        "next-character", str(path), sizes=sizes, batch=BATCH, length=LENGTH, dropout=dropout, device="cpu"
    )
    return new_trainer(settings, lines_of(settings))


def _measure(trainer: Trainer, dropout: float) -> None:
    batch = trainer.data.batch(0)
    ids = batch.ids.tolist()
    functions: dict[str, Callable[[], float]] = {
        "step": lambda: timed(trainer.advance),
        "forward": lambda: timed(lambda: trainer.model.trace(ids=ids, budget=0).compute([LOGITS])),
    }
    torch = _torch(trainer, dropout)
    if torch is not None:
        functions["torch"] = lambda: _ask(torch)
    spent = interleaved(functions, repetitions(30))
    name, note = f"{WIDTH} wide, {LAYERS} layers, {BATCH} × {LENGTH}, dropout {dropout:g}", milliseconds(**spent)
    report(Promise(f"step ÷ forward, {name}", spent["step"] / spent["forward"], bound=3.5, note=note))
    if torch is not None:
        report(Promise(f"step ÷ PyTorch's, {name}", spent["step"] / spent["torch"], bound=1.0))
        torch.kill()
        torch.wait()


def _torch(trainer: Trainer, dropout: float) -> subprocess.Popen[str] | None:
    """A process that makes PyTorch's steps, where there is one."""
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode:
        print("  PyTorch cannot be imported: TORCH_PYTHON names a Python that can")
        return None
    sizes = (trainer.data.vocabulary.size, WIDTH, HEADS, LAYERS, BATCH, LENGTH, dropout)
    arguments = [python, str(Path(__file__).with_name("torch_step.py")), *map(str, sizes)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(torch: subprocess.Popen[str]) -> float:
    """Seconds of one of its steps."""
    assert torch.stdin is not None  # noqa: S101
    assert torch.stdout is not None  # noqa: S101
    print(file=torch.stdin, flush=True)
    return float(torch.stdout.readline())


if __name__ == "__main__":
    main()
