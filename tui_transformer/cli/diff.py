"""`diff`: a dump beside a model, or two traces step by step, and the first step where they part."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import typer

from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit
from tui_transformer.cli.terminal import check_terminal
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.engine.backend import Host


@dataclass(frozen=True, kw_only=True)
class Diff(Flags):
    """Compare a dump with a model: name the first wrong step, and the mistake that explains it.

    A dump is what another program computed: npz, safetensors, a folder of npy, raw or text files, a log of printed
    matrices, the JSON of transformers' debugger, the log of llama.cpp's callback. Two traces are compared step by step;
    two models (names, folders or GGUF files of one model, quantized otherwise) by layer, by head and by their answers,
    too. Exit code 0: all numbers of the dump were compared, and are the same; 1: a step differs; 3: what was compared
    is the same, but something with numbers was not compared: it is named, with the reason. Token IDs are those of the
    dump, unless a sentence or IDs are given.
    """

    first: str | None = argument("A dump, a trace, or a model's name or folder.", default=None, metavar="DUMP")
    second: str | None = argument(
        "The same; without it, the model that the options name.", default=None, metavar="MODEL"
    )
    names: Literal["auto", "transformers", "transformerlens", "ggml"] = option(
        "auto", "Whose names of steps the dump has."
    )
    map: Path | None = option(None, "Lines `name = step` (or JSON): what names of the dump stand for.", metavar="FILE")
    matched: bool = flag("List what each array was taken for, how, and why others were not compared.")
    tolerance: float | None = option(
        None,
        "Cells differ by |a − b| > tolerance · max(1, |a|, |b|); by default, by more than rounding explains, "
        "1e-5 between two traces.",
    )
    format: Literal["text", "json"] = option("text", "How to write it.")
    how: Literal["pytorch", "transformers", "jax", "numpy", "cpp", "llama.cpp"] | None = option(
        None, "Print lines that write a dump, with the names that are looked for."
    )
    open: bool = flag("Open the explorer at the first cell that is wrong, both values beside.")

    def run(self) -> None:
        if self.how is not None:
            from importlib.resources import files

            name = f"{self.how.replace('.', '_')}.txt"
            emit([(files("tui_transformer.diagnosis") / "how" / name).read_text(encoding="utf-8")])
            return
        if self.first is None:
            raise UsageError("name a dump: `tui-transformer diff DUMP MODEL`; --how says how to write one")
        if self.tolerance is not None and not 0 <= self.tolerance < math.inf:
            raise UsageError(f"--tolerance {self.tolerance} is not a number from 0")
        from tui_transformer.cli.two_traces import compare, is_model

        places = [where for where in (self.first, self.second) if where]
        dumps = [where for where in places if not is_model(where)]
        beside = dataclasses.replace(self, model=next((each for each in places if each not in dumps), self.model))
        if self.open:
            beside._open(dumps)
        if len(dumps) == 1:
            from tui_transformer.cli.diagnosis import run_diagnosis

            path, form = Path(dumps[0]), self.format
            code = run_diagnosis(
                beside, path, form, names=self.names, own=self.map, tolerance=self.tolerance, matched=self.matched
            )
        elif self.matched:
            raise UsageError("--matched says what a dump was taken for: name one dump and a model")
        elif self.map is not None or self.names != "auto":
            option = "--names" if self.map is None else "--map"
            raise UsageError(
                f"{option} says what the names of a dump beside a model stand for; two traces, or two models, are "
                "compared by the names that are the same in both: name one dump and a model"
            )
        else:
            code = compare(self, self.first, self.second, self.tolerance, self.format)
        if code:
            raise typer.Exit(code)

    def _open(self, dumps: Sequence[str]) -> NoReturn:
        """Explore the model with a dump beside it, on the tokens of the dump where no others are given."""
        if len(dumps) != 1:
            raise UsageError("--open shows a dump beside a model: name one of each")
        check_terminal()
        from tui_transformer.diagnosis.dumps import open_dump
        from tui_transformer.explorer.run import run
        from tui_transformer.model.options import Reading

        held = Reading()
        if self.text is None and self.ids is None:
            dump = open_dump(Path(dumps[0]))
            held = Reading(ids=_row(dump.ids), decoder_ids=_row(dump.decoder_ids))
        raise typer.Exit(run(self.options(), self.reading(held), dump=dumps[0]))


def _row(ids: Host | None) -> tuple[int, ...] | None:
    if ids is not None and len(ids) > 1:
        raise InputError(f"the dump is of {len(ids)} sentences: the explorer shows one")
    return None if ids is None else tuple(ids[0].tolist())
