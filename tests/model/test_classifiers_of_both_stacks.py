"""Classifiers whose decoder reads the sentence again: BART and T5, as an independent implementation computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError
from tui_transformer.model import Model

FOLDERS = REFERENCES.parent / "classifiers"
NAMES = ("bart", "bart-answers", "mbart", "t5", "t5-tokens")
IDS = [5, 7, 9, 2]


def load(name: str) -> Model:
    return Model.load(FOLDERS / name, device="cpu", dtype="float64")


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_sentences_with_and_without_padding(name):
    with np.load(FOLDERS / name / "expected.npz") as file:
        ids, mask, wanted = file["ids"].tolist(), file["mask"], file["logits"]
    model = load(name)
    logits = model.trace(ids=ids, mask=mask.tolist())["output.logits"]
    real = mask.astype(bool) if wanted.ndim == 3 else slice(None)
    np.testing.assert_allclose(logits[real], wanted[real], atol=1e-12)
    assert model.unread == ()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_read_again_from_its_written_configuration(name, tmp_path):
    model = load(name)
    model.save(tmp_path)
    again = Model.load(tmp_path, device="cpu", dtype="float64")
    assert again.config.to_json() == model.config.to_json()
    step = "output.logits"
    np.testing.assert_allclose(again.trace(ids=IDS)[step], model.trace(ids=IDS)[step], atol=1e-14)


def test_the_decoder_reads_the_sentence_behind_its_start_token():
    model = load("bart")
    assert model.reads_again
    assert model.trace(ids=IDS)["decoder.tokens"].tolist() == [2, 5, 7, 9]
    assert not Model.load(REFERENCES / "bart", device="cpu").reads_again
    assert not load("t5-tokens").reads_again


def test_a_decoder_that_reads_something_of_another_length_is_refused():
    with pytest.raises(InputError, match="as many tokens as its encoder, 4"):
        load("bart").trace(ids=IDS, decoder_ids=[2])


@pytest.mark.parametrize("name", NAMES)
def test_every_step_is_explained(name):
    trace, rng = load(name).trace(ids=IDS), np.random.default_rng(0)
    for step in trace.program.steps:
        index = tuple(int(rng.integers(size)) for size in step.shape)
        assert abs(trace.explain_cell(step.name, index).difference) <= 1e-9, (step.name, index)


def test_commands_let_the_decoder_read_the_sentence_too(capsys):
    from tui_transformer.cli.answer import Answer
    from tui_transformer.cli.session import open_session

    session = open_session(Answer(ids="5,7,9,2", model=str(Path(FOLDERS / "bart")), device="cpu"))
    assert session.trace["decoder.tokens"].reshape(-1).tolist() == [2, 5, 7, 9]
    assert capsys.readouterr().err == ""
