"""Broken files of a survey: results and states, each read or refused in one line that names the file."""

from __future__ import annotations

import dataclasses
import io
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.analysis.survey.batch import Asked
from tui_transformer.analysis.survey.sums import Counts, Examples, Moments, Sums
from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.survey.tables import Survey, line
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.processes import in_process
from tui_transformer.survey.results import Results, examples_path, read_results, write_results
from tui_transformer.survey.running import Job, load_state, run, state_path
from tui_transformer.survey.work import Work

PLACE = ("story", "decoder self-attention", 0, 1, None, "first")
RESULTS = Results(
    [Row(*PLACE, "bits", 0.5, 0.1, 0.9, 0.2, 7), Row(*PLACE[:3], 2, None, "first", "", -1e-300, None, None, None, 1)],
    [Example(*PLACE, 1, 0.25, "a.txt", 3, 5, "the fox\nfound a shell")],
)


def use(path: Path) -> None:
    """Read results; what is read can be shown."""
    results = read_or_refused(lambda: read_results(path), path)
    if results is None:
        return
    for row in results.rows:
        assert row.mean is None or math.isfinite(row.mean)
    survey = Survey(results)
    for table in survey.tables:
        table.order(reverse=False)
        for row in table.rows:
            line(row, table.largest, 100, "")
            survey.examples(row)


@COUNTS
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_broken_tables(tmp_path, ending, count):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"survey.{ending}"
    write_results(path, RESULTS)
    path.with_name(f"survey.examples.{ending}").unlink()

    def check(data: bytes) -> None:
        path.write_bytes(data)
        use(path)

    hold(count, check, data=damaged(path.read_bytes()))


@COUNTS
def test_broken_examples_beside_a_table(tmp_path, count):
    path = tmp_path / "survey.csv"
    write_results(path, RESULTS)
    examples = examples_path(path)
    whole = examples.read_bytes()

    def check(data: bytes) -> None:
        examples.write_bytes(data)
        use(path)

    hold(count, check, data=damaged(whole))
    os.truncate(examples, 3 << 30)
    with pytest.raises(InputError, match=r"survey\.examples\.csv: larger than"):
        read_results(path)


@COUNTS
def test_broken_documents(tmp_path, count):
    path = tmp_path / "survey.json"
    whole = {name: [dataclasses.asdict(each) for each in getattr(RESULTS, name)] for name in ("rows", "examples")}

    def check(data: bytes) -> None:
        path.write_bytes(data)
        use(path)

    hold(count, check, data=st.one_of(changed(whole).map(as_json), damaged(as_json(whole))))


@COUNTS
def test_broken_states(tmp_path, count):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The fox found a shell.\nOnce there was a crow.\n")
    job = Job(Work(ModelOptions("story", device="cpu"), Asked(("first",), top=2)), (str(corpus),), tmp_path / "a.csv")
    run(job, in_process)
    path = state_path(job.out)
    whole = path.read_bytes()
    assert load_state(path, job.settings) is not None
    path.write_bytes(b"x" + whole[1:])
    assert read_or_refused(lambda: load_state(path, job.settings), path) is None

    def check(data: bytes) -> None:
        path.write_bytes(data)
        state = read_or_refused(lambda: load_state(path, job.settings), path)
        assert (state is not None) == (data == whole)

    hold(count, check, data=damaged(whole))


def test_a_packed_state_is_refused_as_it_may_hold_any_number_of_cells(tmp_path):
    data = Sums(Counts(), (), Moments.of(np.zeros((0, 0))), Examples.none(0, 1), {}).to_bytes()
    assert Sums.from_bytes(data)[0].counts == Counts()
    packed = io.BytesIO()
    with np.load(io.BytesIO(data)) as arrays:
        np.savez_compressed(packed, **arrays)
    with pytest.raises(ValueError, match="not the sums of a survey"):
        Sums.from_bytes(packed.getvalue())
