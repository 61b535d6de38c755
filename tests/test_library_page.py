"""The page on the library: every example runs, and the public names and types are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

import tui_transformer
from tui_transformer import Ablate, Edit, Metric, Model, Patch, Set, effects, sweep

PAGE = Path(tui_transformer.__file__).parent / "LIBRARY.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n+^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


def test_there_are_studies() -> None:
    assert sum(any(printed for _, printed in BLOCK.findall(section)) for section in SECTIONS) >= 4


@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split("\n", 1)[0].strip("# ").replace(" ", "-"))
def test_the_examples_of_a_section_run_one_after_another(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A study runs alone, and prints what stands below it."""
    blocks, names, said = BLOCK.findall(section), dict[str, object](), ""
    assert blocks
    for code, wanted in blocks:
        own = {} if wanted else names
        exec(code, own)  # noqa: S102 - the project's own text
        names |= own
        printed = capsys.readouterr().out
        assert not wanted or printed == wanted
        said += printed
    assert bool(said) == ("print(" in section)
    assert "nan" not in said


def test_every_public_name_is_there() -> None:
    for name in tui_transformer.__all__:
        assert getattr(tui_transformer, name) is not None
    refuses("no attribute 'Nothing'", lambda: tui_transformer.Nothing, AttributeError)


STORY, CONTEXT = "The fox found a shell", "0.self_attention.context"
MISTAKES = {
    "names are a list": lambda trace: trace.to_dict("0.output"),
    r"names are a list: \['0": lambda trace: tui_transformer.means([trace], "0.output"),
    "texts are a list": lambda _: tui_transformer.measure_texts(Model.load("story"), "a text"),
    "measures are a list": lambda _: tui_transformer.measure_texts(Model.load("story"), ["a text"], "first"),
    "is a range for every axis": lambda trace: trace.edited([Ablate(CONTEXT, 0)]),
    "has an index for every axis": lambda trace: trace.edited([Edit("0.output", 3, 1.0)]),
    "heads are a number, a range or a list": lambda _: Set(CONTEXT, 0.0, heads="1"),
    "edits are a list of Edit, Ablate": lambda trace: trace.edited(Set(CONTEXT, 0.0)),
    r"edits are a list .*: \[Set": lambda trace: trace.edited_each([Set(CONTEXT, 0.0)]),
    r"edits are a list of Edit.* \[Set": lambda _: tui_transformer.generate(
        Model.load("story"), "A", edits=["no edit"]
    ),
    "edits are a list of Edit, Ablate, Patch": lambda _: tui_transformer.generate(
        Model.load("story"), "A", edits=Set(CONTEXT, 0.0)
    ),
    "rows are a number, a range or a list": lambda _: Set(CONTEXT, 0.0, rows=[1, 1]),
    "are a number or a range here, and no list": lambda trace: Patch.between(trace, trace, CONTEXT, heads=[0, 2]),
    "has no heads 4 to 4: use 0 to 3": lambda trace: trace.edited([Set(CONTEXT, 0.0, heads=4)]),
    "no kind is called 'rows'": lambda trace: list(sweep(trace, trace, "rows", Metric("logit", (3,)))),
    "is not a head, layer": lambda trace: list(effects(trace, ["rows:3"])),
    "by its name, not by int": lambda trace: tui_transformer.figure(trace, 3),
    "there is no position -50: use 0": lambda trace: Metric("logit", (3,)).measure(trace, positions=-50),
    "targets of a metric are IDs in a tuple": lambda _: Metric("loss", targets=np.array([1, 2])),
    "there is no position 79: use 0": lambda trace: Metric("logit", (3,)).measure(trace, positions=range(2, 80)),
    "is no word of the vocabulary": lambda _: Model.load("story").token_id("zebra"),
    "there is no layer 9: layers are": lambda trace: tui_transformer.logit_lens(trace, layer=9),
    "there is no layer 7: layers are": lambda trace: tui_transformer.rollout(trace, 7),
}


@pytest.mark.parametrize("said", MISTAKES)
def test_mistakes_are_said_in_a_line(said: str) -> None:
    refuses(said, lambda: MISTAKES[said](Model.load("story").trace(STORY)))


def test_numbers_stand_for_ranges_kinds_for_tables_and_words_for_targets() -> None:
    trace, other = (Model.load("copy").trace(ids=ids) for ids in ([5, 6, 7, 8, 5], [5, 10, 7, 8, 5]))
    metric = Metric("difference", (6, 10))
    assert metric.measure(trace) == metric.measure(trace, trace, range(4, 5)) == metric.measure(trace, positions=4)
    table = tui_transformer.table_of(trace.program, "head")
    assert list(sweep(trace, other, "head", metric)) == list(sweep(trace, other, table, metric, range(4, 5)))
    heads = list(effects(trace, "head", metric=metric))
    assert heads == list(effects(trace, [str(target) for target, _ in heads], metric=metric, positions=-1))
    name = trace.program.named(CONTEXT)
    zero = trace.edited([Set(CONTEXT, 0.0, heads=2, rows=range(1, 3))])[name]
    assert not zero[2, 1:3].any()
    assert np.array_equal(zero[:2], trace[name][:2])


def test_the_end_of_a_name_is_enough_to_explain_a_weight_too() -> None:
    trace = Model.load("story").trace(STORY)
    for name, place in (
        ("1.feed_forward.output.weight", {"row": 3, "column": 2}),
        ("1.feed_forward.output.bias", {"row": 3}),
    ):
        found = trace.explain(name, **place)
        assert found.name == f"decoder.{name}"
        assert found.stored == trace[name][tuple(place.values())]


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    two, half = np.int64(2), np.float32(0.5)
    model = Model.load("decoder", layers=two, d_model=np.int64(16), heads=two, seed=two)
    assert (
        json.loads(json.dumps(model.config.to_json()))
        == Model.load("decoder", layers=2, d_model=16, heads=2, seed=2).config.to_json()
    )
    story = Model.load("story")
    settings = {"max_new_tokens": two, "top_k": two, "seed": two, "temperature": half, "top_p": half}
    plain = {"max_new_tokens": 2, "top_k": 2, "seed": 2, "temperature": 0.5, "top_p": 0.5}
    assert tui_transformer.generate(story, "Once", **settings) == tui_transformer.generate(story, "Once", **plain)
    texts = ["A crow saw", "The fox found", "Once there was", "She was there"]
    found = [
        tui_transformer.direction(story, texts[:2], texts[2:], "1.output", position=at).vector for at in (1, two - 1)
    ]
    assert np.array_equal(*found)
    recorded = tui_transformer.record(story, texts, ["1.output"], tmp_path / "states")
    probes = [tui_transformer.probe(recorded, [0, 0, 1, 1], position=at)[0].bias for at in (1, two - 1, [two - 1])]
    assert probes[0] == probes[1] == probes[2]


def test_padding_is_where_an_answer_is_read_if_that_is_asked_for() -> None:
    both, metric = Model.load("story").trace(["Once there was a girl", "A crow"]), Metric("logit", (5,))
    assert metric.measure(both, positions=-1, item=1) != pytest.approx(metric.measure(both, item=1), abs=1e-5)


def test_lens_rollout_and_words_are_those_of_the_commands() -> None:
    trace = Model.load("story").trace(STORY)
    *_, last = tui_transformer.logit_lens(trace, top=2)
    word, share = tui_transformer.words_at(last, -1)[0]
    assert word == trace["output.logits"][-1].argmax()
    assert share == pytest.approx(trace["output.probabilities"][-1].max())
    mixed = [(trace[f"{i}.self_attention.weights"].mean(axis=0) + np.eye(len(trace["tokens"]))) / 2 for i in range(3)]
    np.testing.assert_allclose(tui_transformer.rollout(trace), mixed[2] @ mixed[1] @ mixed[0], atol=1e-6)
    np.testing.assert_allclose(tui_transformer.rollout(trace, 0), mixed[0], atol=1e-6)
    # a word is found with and without the space before it
    model = Model.load("story")
    assert model.word(model.token_id(" the")) == "Ġthe"
    assert model.word(model.token_id("the")) == ("the" if "the" in model.vocabulary.ids else "Ġthe")


# The types that the library ships say what it takes: programs of its users can be checked

PROGRAM = """
import numpy as np
from tui_transformer import Add, Apply, Model, Patch, Scale, Set, Trace

model = Model.load("story")
trace: Trace = model.trace("The fox found a shell")
vector = np.zeros(80)
edited = trace.edited([
    Set("0.self_attention.context", 0, heads=2, rows=np.int64(1)),
    Set("0.self_attention.context", [0.0, 1.0], heads=range(2), columns=range(2)),
    Set("*.self_attention.context", 0, heads=[0, 2]),
    Add("0.output", vector, rows=1),
    Scale("0.output", np.float32(2), columns=0),
    Apply("0.feed_forward.activation", function=lambda x: np.maximum(x, 0)),
    Patch.between(trace, model.trace("The crow found a shell"), "0.output", rows=1),
    Patch.of("0.feed_forward.output", 2 * trace["0.feed_forward.output"]),
])
shapes: dict[str, tuple[int, ...]] = {name: value.shape for name, value in edited.items()}
model.trace(ids=np.arange(5, 8))
"""

MISTAKEN = """
from tui_transformer import Metric, Model, effects, measure_texts, sweep, table_of

model = Model.load("story")
trace = model.trace("The fox found a shell")
Metric("logits", (5,))
sweep(trace, trace, "heads", Metric("logit", (5,)))
table_of(trace.program, "rows")
effects(trace, "head", metric=trace.program.shape)
measure_texts(model, ["The fox"], ["ablation"], metric="kl")
"""
"""A typing mistake in every one of its last lines."""


def test_a_program_of_a_user_is_found_right_by_mypy_and_its_mistakes_in_names_are_found(tmp_path: Path) -> None:
    assert PAGE.with_name("py.typed").is_file()
    check = pytest.importorskip("mypy.api", reason="mypy is not installed").run
    examples = ["\n".join(code for code, _ in BLOCK.findall(section)) for section in SECTIONS]
    texts = {f"example_{i}.py": text for i, text in enumerate((*examples, PROGRAM))} | {"mistaken.py": MISTAKEN}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in texts]
    said, mistakes, _ = check(["--strict", "--config-file=", "--cache-dir", str(tmp_path), *files])
    assert mistakes == ""
    errors = re.findall(r"(\w+)\.py:(\d+): error", said)
    assert errors == [("mistaken", str(line)) for line in (6, 7, 8, 9, 10)], said


def test_that_program_runs() -> None:
    exec(PROGRAM, {})  # noqa: S102 - as above
