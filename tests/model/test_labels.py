"""Classifiers: labels take the place of words, at the sentence or at every token, in models of one stack and of two."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from plain_numpy import softmax
from reference import REFERENCES, in_float64, with_settings
from refusing import refuses
from safetensors.numpy import load_file, save_file

from tui_transformer.analysis.effects import counted_positions, effects
from tui_transformer.analysis.score import score
from tui_transformer.cli.answer import Answer
from tui_transformer.cli.metrics import _backward
from tui_transformer.cli.session import open_session
from tui_transformer.engine.gradient import gradients
from tui_transformer.model import Model

IDS = [2, 7, 9, 33, 12]
NAMES = {"0": "good", "1": "bad [/]", "2": "neither"}
SENTENCE, TOKEN, QUESTION = "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"


FOLDERS = REFERENCES.parent / "classifiers"
OF_BERT = {"bert.pooler.dense.weight": (32, 32), "bert.pooler.dense.bias": (32,)}
OF_LABELS = {"classifier.weight": (3, 32), "classifier.bias": (3,)}
CHECKPOINTS = ("bart", "bart-answers", "mbart", "t5", "t5-tokens")
READ = [5, 7, 9, 2]


def load(name: str) -> Model:
    return in_float64(FOLDERS / name)


@pytest.fixture
def classifier(tmp_path):
    """A reference checkpoint with a head of labels instead of its own."""

    def make(family: str, head: str, tensors: dict[str, tuple[int, ...]], **settings: object) -> Model:
        with_settings(tmp_path, family, **{"architectures": [f"Any{head}"], "id2label": NAMES, **settings})
        rng = np.random.default_rng(1)
        new = {name: rng.normal(size=shape).astype(np.float32) for name, shape in tensors.items()}
        save_file(load_file(tmp_path / "model.safetensors") | new, tmp_path / "model.safetensors")
        return in_float64(tmp_path)

    return make


def test_a_sentence_is_classified_by_its_first_token(classifier):
    trace = classifier("bert", SENTENCE, OF_BERT | OF_LABELS).trace(ids=IDS)
    (hidden, a), (logits, b) = (
        (trace[f"output.{name}.weight"], trace[f"output.{name}.bias"]) for name in ("transform.hidden", "logits")
    )
    first = trace["encoder.1.output"][0]
    assert np.array_equal(trace["output.pooled"], first)
    wanted = np.tanh(first @ hidden + a) @ logits + b
    np.testing.assert_allclose(trace["output.logits"], wanted, atol=1e-12)
    np.testing.assert_allclose(trace["output.probabilities"], softmax(wanted), atol=1e-12)
    assert trace.program.axes("output.logits")[-1].words == tuple(NAMES.values())


def test_tokens_are_classified_too_and_an_answer_has_a_start_and_an_end(classifier):
    trace = classifier("bert", TOKEN, OF_LABELS).trace(ids=IDS)
    wanted = trace["encoder.1.output"] @ trace["output.logits.weight"] + trace["output.logits.bias"]
    np.testing.assert_allclose(trace["output.logits"], wanted, atol=1e-12)
    assert "output.transform.hidden" not in trace.names
    assert not trace.program.logits
    # an answer
    trace = classifier("bert", QUESTION, {"qa_outputs.weight": (2, 32), "qa_outputs.bias": (2,)}).trace(ids=IDS)
    assert trace.program.axes("output.logits")[-1].words == ("start", "end")
    assert "output.probabilities" not in trace.names
    # a decoder
    model = classifier("llama", SENTENCE, {"score.weight": (3, 32)}, pad_token_id=5, eos_token_id=3)
    trace = model.trace(ids=[*IDS, 5, 5])
    assert np.array_equal(trace["output.pooled"], trace["decoder.norm"][len(IDS) - 1])
    np.testing.assert_allclose(trace["output.logits"], model.trace(ids=IDS)["output.logits"], atol=1e-12)
    assert "output.logits.bias" not in trace.program.weights


def test_a_narrow_opt_classifies_texts_that_are_padded_on_either_side():
    with np.load(FOLDERS / "opt" / "expected.npz") as file:
        ids, mask, wanted = file["ids"].tolist(), file["mask"].tolist(), file["logits"]
    model = load("opt")
    for given in (mask, None):
        np.testing.assert_allclose(model.trace(ids=ids, mask=given)["output.logits"], wanted, atol=1e-12)
    assert model.trace(ids=ids[0]).program.shape("decoder.projected") == (7, 8)
    assert model.unread == ()


def test_a_discriminator_says_of_every_token_whether_it_was_replaced_and_is_an_encoder_without_its_head(tmp_path):
    with np.load(FOLDERS / "electra-discriminator" / "expected.npz") as file:
        ids, wanted = file["input_ids"].tolist(), file["logits"]
    model = load("electra-discriminator")
    trace = model.trace(ids=ids)
    np.testing.assert_allclose(trace["output.logits"], wanted, atol=1e-12)
    np.testing.assert_allclose(trace["output.probabilities"], 1 / (1 + np.exp(-wanted)), atol=1e-12)
    assert trace.program.axes("output.logits")[-1].words == ("replaced",)
    assert model.unread == ()
    shutil.copytree(FOLDERS / "electra-discriminator", tmp_path, dirs_exist_ok=True)
    tensors = load_file(tmp_path / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("discriminator_predictions")}
    save_file(kept, tmp_path / "model.safetensors")
    assert "output.logits" not in Model.load(tmp_path, device="cpu").program(5).names


def test_labels_and_shares_are_those_of_the_problem_or_refused_by_name(classifier):
    for problem, wanted in (
        ("single_label_classification", softmax),
        ("multi_label_classification", lambda x: 1 / (1 + np.exp(-x))),
        ("regression", None),
    ):
        trace = classifier("bert", SENTENCE, OF_BERT | OF_LABELS, problem_type=problem).trace(ids=IDS)
        if wanted:
            np.testing.assert_allclose(trace["output.probabilities"], wanted(trace["output.logits"]), atol=1e-12)
        else:
            assert trace.names[-1] == "output.logits"
    for settings, message in (
        ({"id2label": {"0": "a", "2": "b"}}, "id2label .* does not number the labels 0, 1, 2"),
        ({"id2label": ["a"]}, "id2label .* is not a table of labels"),
        ({"id2label": {}}, "id2label {} is not a table of labels"),
        ({"problem_type": "ranking"}, "problem_type 'ranking' is not known"),
        ({"problem_type": []}, r"problem_type \[\] is not known"),
        ({"classifier_activation": {"tanh": 1}}, "activation .* of the classifier is not known"),
        ({"classifier_pooling": "max"}, "classifier_pooling 'max' is not known: use cls, mean"),
        ({"id2label": {"0": "a", "1": "b"}}, "tensor classifier.weight is 3 × 32, which gives 32 × 3, but config.json"),
    ):
        refuses(message, lambda settings=settings: classifier("bert", SENTENCE, OF_BERT | OF_LABELS, **settings))


@pytest.mark.parametrize("head", [SENTENCE, TOKEN])
def test_a_classifier_is_saved_and_loaded_again(tmp_path, classifier, head):
    model = classifier("bert", head, OF_BERT | OF_LABELS)
    model.save(tmp_path / "saved")
    again = in_float64(tmp_path / "saved")
    assert again.config.labels.names == model.config.labels.names
    logits, wanted = (each.trace(ids=IDS)["output.logits"] for each in (again, model))
    np.testing.assert_allclose(logits, wanted, rtol=0, atol=1e-12)


# Reference checkpoints: of BART and T5 the decoder reads the sentence again
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_labels_of_sentences_with_and_without_padding(name):
    with np.load(FOLDERS / name / "expected.npz") as file:
        ids, mask, wanted = file["ids"].tolist(), file["mask"], file["logits"]
    model = load(name)
    logits = model.trace(ids=ids, mask=mask.tolist())["output.logits"]
    real = mask.astype(bool) if wanted.ndim == 3 else slice(None)
    np.testing.assert_allclose(logits[real], wanted[real], atol=1e-12)
    assert model.unread == ()


@pytest.mark.parametrize("name", ["bart", "mbart", "t5"])
def test_padding_moves_no_effect_on_the_states_of_a_decoder_that_reads_again(name):
    model = load(name)
    pad = model.config.pad_id
    plain, padded = model.trace(ids=READ), model.trace(ids=[*READ, pad, pad], mask=[1, 1, 1, 1, 0, 0])
    assert counted_positions(padded) == counted_positions(plain) == range(4)
    for (target, one), (_, other) in zip(effects(plain, "head"), effects(padded, "head"), strict=True):
        assert other.relative == pytest.approx(one.relative, rel=1e-9), target


def test_the_decoder_reads_the_sentence_behind_its_start_token_in_commands_too(capsys):
    model = load("bart")
    assert model.reads_again
    assert model.trace(ids=READ)["decoder.tokens"].tolist() == [2, 5, 7, 9]
    assert not Model.load(REFERENCES / "bart", device="cpu").reads_again
    assert not load("t5-tokens").reads_again
    refuses("as many tokens as its encoder, 4", lambda: load("bart").trace(ids=READ, decoder_ids=[2]))
    session = open_session(Answer(ids="5,7,9,2", model=str(FOLDERS / "bart"), device="cpu"))
    assert session.trace["decoder.tokens"].reshape(-1).tolist() == [2, 5, 7, 9]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["bart", "opt"])
def test_a_label_of_the_whole_text_has_no_loss_over_positions(name):
    trace = load(name).trace(ids=READ)
    for leads_back, given in (
        (gradients, [1]),
        *((_backward, SimpleNamespace(targets=[text])) for text in ("1,1,1", "1")),
    ):
        refuses("gives the whole text one label", lambda given=given, leads_back=leads_back: leads_back(trace, given))
    refuses("gives words no probability", lambda: score(trace, [1]))
