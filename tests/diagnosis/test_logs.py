"""Printed logs: how long headings count, what is a row and what a heading; in time and memory in proportion to them."""

from __future__ import annotations

import cProfile
import pstats
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from dumping import IDS, blamed, computed, dump_of, model_of, rows
from plain_numpy import softmax

from tui_transformer.diagnosis import Diagnosis, Input, diagnose
from tui_transformer.diagnosis.dumps import Dump, open_dump
from tui_transformer.diagnosis.dumps.headings import is_named, says
from tui_transformer.diagnosis.naming.words import every_phrase, is_spoken, phrase_of
from tui_transformer.errors import InputError
from tui_transformer.model import Model

AT = "encoder.0.self_attention"


def diagnosed(text: str, folder: Path, model: str = "post") -> Diagnosis:
    return diagnose(dump_of(text, folder), model_of(model), Input(np.array([IDS])))


def steps(diagnosis: Diagnosis) -> dict[str, str]:
    return {each.theirs: each.step for each in diagnosis.steps}


# Names of the model's level end the scope of a layer


def test_logits_after_a_heading_of_a_layer_are_those_of_the_model(tmp_path: Path) -> None:
    logits = computed("post")["output.logits"]
    for heading in ("Layer 1", "=== Encoder Layer 1 ===\nHead 1", "Layer 1\nHead 0\nscores"):
        diagnosis = diagnosed(f"{heading}:\n\nlogits:\n{rows(logits)}", tmp_path)
        assert steps(diagnosis) == {"logits": "output.logits"}
        assert diagnosis.same
    assert not diagnosed(f"Layer 1:\n\nlogits:\n{rows(3 * logits)}", tmp_path).same


def test_a_final_norm_after_the_layers_is_that_of_the_stack(tmp_path: Path) -> None:
    arrays = computed("pre")
    text = f"Layer 1\nQ head 0:\n{rows(arrays['decoder.1.self_attention.query'][0])}"
    for name in ("final norm", "Final LayerNorm", "ln_f", "Last norm", "After final layer norm"):
        diagnosis = diagnosed(f"{text}{name}:\n{rows(arrays['decoder.norm'])}", tmp_path, "pre")
        assert diagnosis.same, diagnosis.unmatched
        assert list(steps(diagnosis).values()) == ["decoder.1.self_attention.query", "decoder.norm"]
    text = f"Layer 1 output:\n{rows(arrays['decoder.1.output'])}Final norm:\n{rows(1.1 * arrays['decoder.norm'])}"
    assert blamed(diagnosed(text, tmp_path, "pre").first).step == "decoder.norm"


def test_softmax_after_the_logits_is_that_of_the_model_and_an_output_that_of_its_section(tmp_path: Path) -> None:
    logits = computed("post")["output.logits"]
    text = f"Layer 1\n===== Output =====\nlogits:\n{rows(logits)}softmax:\n{rows(softmax(logits))}"
    assert list(steps(diagnosed(text, tmp_path)).values()) == ["output.logits", "output.probabilities"]
    # an output is that of the section that it stands in
    arrays = computed("post")
    text = "Layer 1\n  Self-Attention\n    Output:\n" + rows(arrays["encoder.1.self_attention.output"])
    text += "  Feed Forward\n    Output:\n" + rows(arrays["encoder.1.feed_forward.output"])
    text += "  Add & Norm 2:\n" + rows(arrays["encoder.1.feed_forward.norm"])
    text += "===== Output =====\nOutput:\n" + rows(arrays["output.logits"])
    diagnosis = diagnosed(text, tmp_path)
    wanted = ["self_attention.output", "feed_forward.output", "feed_forward.norm"]
    assert list(steps(diagnosis).values()) == [*(f"encoder.1.{step}" for step in wanted), "output.logits"]
    assert diagnosis.same


# "Same" is said of what was compared


def test_what_was_not_compared_is_named_with_its_reason(tmp_path: Path) -> None:
    arrays = computed("post")
    text = "Layer 0\nQ:\n" + rows(arrays[f"{AT}.query"][0]) + "my matrix:\n1.5 2.5\n3.5 4.5\n"
    text += "K head 9:\n1.5\nV:\n1.5 2\n3\n4 5 6\nscores head 0:\n1.5 2.5\nworst error was 0.125 here\n"
    unmatched = diagnosed("Q head 0:\n" + text.partition("Q:\n")[2], tmp_path).unmatched
    assert [each.partition(":")[0] for each in unmatched] == [
        "my matrix", "K head 9", "scores head 0", "V", "the line 'worst error was 0.125 here'",
    ]  # fmt: skip
    reasons = ("no step of this name", "head 9: the model has 2 heads", "does not fit", "rows of different", "words")
    assert all(reason in each for reason, each in zip(reasons, unmatched, strict=True))
    # token IDs that are not those given
    text = "Token IDs: 1 2 3 4 5 6 7\nlogits:\n" + rows(computed("post")["output.logits"])
    assert diagnosed(text, tmp_path).unmatched == ("Token IDs: not what the model was given here",)


# Layers, heads and sentences


def test_layers_and_heads_are_counted_as_their_numbers_fit(tmp_path: Path) -> None:
    weights = [computed("post")[f"encoder.{i}.self_attention.weights"] for i in (0, 1)]
    for first in (0, 1):
        text = ""
        for layer in range(2):
            text += f"Layer {layer + first}\n"
            for head in range(2):
                text += f"Attention weights (head {head + first}):\n{rows(weights[layer][head])}"
        diagnosis = diagnosed(text, tmp_path)
        assert diagnosis.same
        assert [each.step for each in diagnosis.steps] == [f"encoder.{i}.self_attention.weights" for i in (0, 1)]
    diagnosis = diagnosed(f"Layer 1, head 1, attention weights:\n{rows(weights[0][0])}", tmp_path)
    assert diagnosis.same
    assert [each.step for each in diagnosis.steps] == ["encoder.0.self_attention.weights"]


def test_a_norm_that_is_printed_twice_is_that_of_each_sublayer(tmp_path: Path) -> None:
    arrays = computed("post")
    text = "".join(
        f"Layer {i}\n" + "".join(
            f"Add & Norm:\n{rows(arrays[f'encoder.{i}.{part}.norm'])}" for part in ("self_attention", "feed_forward")
        ) for i in range(2)
    )  # fmt: skip
    diagnosis = diagnosed(text, tmp_path)
    assert diagnosis.same
    assert len(diagnosis.steps) == 4


SENTENCES = ([1, 2, 3, 4], [5, 6, 7])


def of_sentences(heading: str) -> str:
    text, model = "", model_of("post")
    for i, ids in enumerate(SENTENCES):
        trace = model.trace(ids=ids)
        text += f"{heading.format(i + 1)}\nToken IDs: {ids}\nLayer 0\n"
        text += "".join(f"Q head {h}:\n{rows(trace[f'{AT}.query'][h])}" for h in range(2))
        text += f"logits:\n{rows(trace['output.logits'])}"
    return text


@pytest.mark.parametrize("heading", ["", "Sentence {}:", "=== Input {} ===", "Example #{}"])
def test_several_sentences_of_a_log_are_compared_each(heading: str, tmp_path: Path) -> None:
    dump = dump_of(of_sentences(heading), tmp_path)
    assert [each.ids.tolist() for each in (dump, *dump.further) if each.ids is not None] == [[ids] for ids in SENTENCES]
    for each in (dump, *dump.further):
        diagnosis = diagnose(each, model_of("post"))
        assert diagnosis.same, (diagnosis.first, diagnosis.unmatched)
        assert len(diagnosis.steps) == 2


PADDED = [5, 1, 3, 0, 0]


def padded(*, hidden: bool) -> tuple[Model, str]:
    """A sentence with padding, printed by a program that hides it, or does not."""
    model = Model.load("encoder", layers=1, d_model=8, heads=2, d_ff=12, pad_id=0)
    trace = model.trace(ids=PADDED) if hidden else model.trace(ids=PADDED, mask=np.ones((1, 5), bool))
    text = f"Token IDs: {PADDED}\nLayer 0\n"
    for head in range(2):
        for name, step in (("Masked scores", "masked"), ("Attention weights", "weights")):
            text += f"{name} head {head}:\n{rows(trace[f'{AT}.{step}'][head])}"
    return model, text


def test_a_padded_sentence_is_right_with_its_mask_and_wrong_without(tmp_path: Path) -> None:
    for mask in ("", "Attention mask: [1, 1, 1, 0, 0]\n"):
        model, text = padded(hidden=True)
        diagnosis = diagnose(dump_of(mask + text, tmp_path), model)
        assert diagnosis.same, (diagnosis.first, diagnosis.unmatched)
        model, text = padded(hidden=False)
        first = blamed(diagnose(dump_of(mask + text, tmp_path), model).first)
        assert first.step == f"{AT}.masked"  # a finite score where −∞ belongs


# What is a row, and what a heading


def test_what_a_log_shows_otherwise_is_joined_or_read(tmp_path: Path) -> None:
    # rows that go on in a shorter line
    dump = dump_of("Q:\n" + "1.5 2.5 3.5\n4.5\n" * 3, tmp_path)
    assert dump.tensors["Q"].shape == (3, 4)
    assert dump.notes == ("Q: rows of 3 and 1 are joined",)
    # UTF-16
    (tmp_path / "run.log").write_bytes("Q:\r\n1.5 2\r\n".encode("utf-16"))
    assert open_dump(tmp_path / "run.log").tensors["Q"].shape == (1, 2)


def test_weights_masks_and_settings_that_are_printed_are_known(tmp_path: Path) -> None:
    model, arrays = model_of("pre"), computed("pre")
    weight = np.array(model.weights.get("decoder.0.self_attention.query.weight", (16, 16)))
    n = len(IDS)
    text = f"d_model = 16\nheads: 2\nscale: 0.353553\nCausal mask:\n{rows(np.tril(np.ones((n, n))))}"
    text += f"Layer 0\nW_q:\n{rows(weight)}Masked scores, head 0:\n{rows(arrays['decoder.0.self_attention.masked'][0])}"
    diagnosis = diagnosed(text.replace("Causal mask", "Mask"), tmp_path, "pre")
    assert diagnosis.unmatched == ()
    assert {each.theirs: each.step for each in diagnosis.plan if each.step.endswith("weight")} == {
        "layer 0 W_q": "decoder.0.self_attention.query.weight"
    }


PLAIN_ENGLISH = {
    "Scaled scores": f"{AT}.scaled",
    "Attention scores (before softmax)": f"{AT}.scores",
    "Attention weights": f"{AT}.weights",
    "After softmax": f"{AT}.weights",
    "Multi-Head Attention Output": f"{AT}.output",
    "After add & norm": f"{AT}.norm",
    "FFN hidden": "encoder.0.feed_forward.hidden",
    "After ReLU": "encoder.0.feed_forward.activation",
    "FFN output": "encoder.0.feed_forward.output",
    "Encoder layer 1 output": "encoder.1.feed_forward.norm",
    "Embeddings + positional encoding": "embedding.output",
    "Positional encodings": "embedding.positions",
    "Final output logits": "output.logits",
}


def test_headings_in_plain_english_are_understood(tmp_path: Path) -> None:
    arrays = computed("post")
    aliases = {"encoder.1.feed_forward.norm": "encoder.1.output"}
    text = ""
    for heading, step in PLAIN_ENGLISH.items():
        array = arrays[aliases.get(step, step)]
        for head, matrix in enumerate(array) if array.ndim == 3 else [("", array)]:
            text += f"{heading}{f' (head {head})' if array.ndim == 3 else ''}:\n{rows(matrix)}"
    diagnosis = diagnosed("Layer 0\n" + text, tmp_path)
    assert diagnosis.same, (diagnosis.first, diagnosis.unmatched)
    assert {each.step for each in diagnosis.steps} == set(PLAIN_ENGLISH.values())


# Size


def test_a_raw_file_is_matched_by_its_number_of_elements_where_that_is_unique(tmp_path: Path) -> None:
    arrays = computed("post")
    np.asarray(arrays["output.logits"], np.float32).tofile(tmp_path / "out.bin")
    for path in (tmp_path / "out.bin", tmp_path):
        diagnosis = diagnose(open_dump(path), model_of("post"), Input(np.array([IDS])))
        assert diagnosis.first is None
    (tmp_path / "out.bin").unlink()
    np.zeros(13, np.float32).tofile(tmp_path / "ffn.f32")
    with pytest.raises(InputError):
        diagnose(open_dump(tmp_path), model_of("post"), Input(np.array([IDS])))
    (tmp_path / "ffn.f32").unlink()
    # where several steps have so many, shapes.json is described
    np.asarray(arrays["output.logits"], np.float32).tofile(tmp_path / "logits.f32")
    np.zeros(7 * 16, np.float32).tofile(tmp_path / "mine.f32")
    (unmatched,) = diagnose(open_dump(tmp_path), model_of("post"), Input(np.array([IDS]))).unmatched
    assert "112 numbers: " in unmatched
    assert 'shapes.json beside it: {"mine": [7, 16]}' in unmatched


# Logs of every size and kind are read in time and memory in proportion to them, or refused


@pytest.mark.parametrize(
    "heading", ["scores", "Layer {0} head {0} thing {0}", "{0}", "Q[{0}]", "foo bar {0}", "the fox"]
)
def test_a_thousand_headings_are_read_in_time_in_proportion(heading: str, tmp_path: Path) -> None:
    """The work is counted: twice the headings take about twice the calls."""

    def calls(count: int) -> int:
        text = "".join(f"{heading.format(i)}:\n1.5 2.5\n" for i in range(count))
        profile = cProfile.Profile()
        profile.runcall(dump_of, text, tmp_path)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    assert calls(1000) < 2.3 * calls(500)


def test_a_long_line_is_read_in_parts_and_numbers_that_float32_does_not_hold_are_exact(tmp_path, monkeypatch):
    array = np.random.default_rng(0).normal(size=(3000, 16))
    text = "Q: [" + ", ".join(f"[{', '.join(f'{x:.6f}' for x in row)}]" for row in array) + "]\nK:\n1.5 2\n"
    dump = dump_of(text, tmp_path)
    np.testing.assert_allclose(dump.tensors["Q"].values.array, array, atol=1e-6)
    assert dump.tensors["K"].shape == (1, 2)
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.MANY", 1)
    (array,) = (each.values.array for each in dump_of("Q:\n1 2\n3 4\n0.1 1e300\n", tmp_path).tensors.values())
    assert array.tolist() == [[1, 2], [3, 4], [0.1, 1e300]]


def traced(path: Path) -> tuple[int, Dump]:
    """The most memory that reading a dump takes, and the dump."""
    tracemalloc.start()
    dump = open_dump(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, dump


def test_reading_takes_little_more_memory_than_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.log"
    path.write_text("Q:\n" + "0.123456 -1.23456 2.34567 -0.98765\n" * 60_000)
    assert traced(path)[0] < 2.5 * path.stat().st_size
    # numbers of two letters take no more than thrice the file
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.MANY", 1000)
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.log.PIECE", 1 << 10)
    path.write_text("Q:\n" + "1 2 3 4 5 6 7 8\n" * 20_000)
    peak, dump = traced(path)
    assert peak < 3 * path.stat().st_size
    assert (dump.tensors["Q"].values.array == np.arange(1, 9)).all()


def test_lines_of_numbers_are_read_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is counted: a line of a number is split, and nothing else is called for it."""
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.LOOKED_AT", 0)
    (tmp_path / "run.log").write_text("Q:\n" + "1\n" * 20_000)
    profile = cProfile.Profile()
    profile.runcall(open_dump, tmp_path / "run.log")
    assert pstats.Stats(profile).total_calls < 2.5 * 20_000  # type: ignore[attr-defined]
    assert open_dump(tmp_path / "run.log").tensors["Q"].shape == (20_000, 1)


def test_rows_without_end_or_of_any_width_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.MOST_RUNS", 50)
    dump = dump_of("Q:\n" + "1.5 2.5\n3.5\n" * 100 + "K:\n1.5\n", tmp_path)
    assert list(dump.tensors) == ["K"]
    assert dump.refused == {"Q": "rows of different lengths"}
    with pytest.raises(InputError, match="Q: rows of different lengths"):
        dump_of("Q:\n" + "[" * 5000 + "1.5 2.5" + "]" * 5000, tmp_path)


SAYING = [
    "encoderlayer0", "transformerblock-3", "L1H2", "testcase 2", "batch_item 1", "2nd layer", "decoder#1",
    "Inputsentence 4", "input: 3", "logits", "After add", "ids", "QueryKey head3",
]  # fmt: skip


def test_the_quick_look_at_a_line_passes_over_nothing_that_it_says() -> None:
    spoken = [phrase for phrase in every_phrase() if is_spoken(phrase_of(phrase))]
    assert len(spoken) > 200
    assert [phrase for phrase in spoken if not is_named(phrase)] == []
    assert [line for line in SAYING if not says(line)] == []
    assert not says("the quick brown fox")


def test_headings_that_no_log_can_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.log.MOST", 3)
    for numbers in ("1.5\n", "1.5\n2.5 3\n4 5 6\n"):  # those that cannot be read count too
        with pytest.raises(InputError, match=r"run\.log: more than 3 headings with numbers"):
            dump_of("".join(f"{name}:\n{numbers}" for name in "abcd"), tmp_path)
    # without numbers
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.log.MOST_IN_A_ROW", 30)
    with pytest.raises(InputError, match="more than 30 headings without numbers"):
        dump_of("".join(f"layer {i}:\n" for i in range(31)), tmp_path)
    numbers = "".join(f"layer {i}:\n" for i in range(29)) + "Q:\n0.5 1.5\n2.5 3.5\n"
    assert dump_of(numbers * 2, tmp_path).tensors
