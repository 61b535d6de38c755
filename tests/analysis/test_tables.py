"""Results as tables: sequences with flat rows, found no sooner than they are asked for; and which sentence is meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from refusing import refuses

import tui_transformer as tt
from tui_transformer import Metric, Model
from tui_transformer.analysis.found import Again, Found

COPY, STORY = (Model.load(name, device="cpu") for name in ("copy", "story"))
METRIC = Metric("difference", (6, 10))


def copied(*ids: int) -> tt.Trace:
    return COPY.trace(ids=ids)


HEADS = tt.circuits(copied(5))
TABLES: dict[str, tuple[Any, set[str]]] = {
    "effects": (
        tt.effects(copied(5, 6, 5), "head"),
        {"target", "kind", "place", "number", "change", "divergence", "relative", "value"},
    ),
    "sweep": (tt.sweep(copied(5, 6, 5), copied(5, 7, 5), "layer", METRIC), {"step", "layer", "column", "value"}),
    "logit_lens": (
        tt.logit_lens(STORY.trace("The fox"), 2),
        {"layer", "step", "position", "rank", "token", "word", "probability"},
    ),
    "words_at": (tt.words_at(tt.logit_lens(STORY.trace("The fox"), 2)[-1], -1), {"token", "probability"}),
    "circuits": (HEADS, {"part", "layer", "head", "ov_norm", "qk_norm", "ov_largest", "qk_largest"}),
    "compositions": (
        tt.compositions(list(HEADS), "K"),
        {f"{end}_{what}" for end in ("source", "target") for what in ("part", "layer", "head")} | {"score"},
    ),
    "head_lens": (tt.head_lens(STORY.trace("The fox"), 1), {"part", "layer", "head", "rank", "token", "word", "logit"}),
    "measure_texts": (
        tt.measure_texts(STORY, ["The fox", "A crow"], ["first"]).rows,
        set(tt.measure_texts(STORY, ["The fox"], ["first"]).rows()[0]),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_is_a_list_is_a_sequence_with_flat_rows(name: str):
    table, columns = TABLES[name]
    rows = table.rows()
    assert rows
    assert all(set(row) == columns for row in rows)
    assert all(isinstance(cell, str | int | float | None) for row in rows for cell in row.values())
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert isinstance(table, Sequence)
    assert len(table) == len(list(table)) <= len(rows)
    assert repr(table[-1]) == repr(list(table)[-1])
    assert len(table[:2]) == 2
    assert len(repr(table)) < 2000
    with pytest.raises(IndexError):
        _ = table[len(table)]


def test_an_attribution_has_the_rows_of_its_terms_and_a_table_gives_one_after_the_other():
    found = tt.attribute(STORY.trace("The fox"), 40)
    first = {"name": found.terms[0].name, "kind": "embedding", "number": None, "value": found.terms[0].value}
    assert found.rows()[0] == first
    found = tt.effects(copied(5, 6, 5), "layer")
    assert [next(found), next(found)] == list(found)[:2]
    assert [next(found, None) for _ in range(len(found) - 1)] == [*list(found)[2:], None]


def test_no_more_is_found_than_is_asked_for_and_nothing_twice():
    made: list[int] = []

    def results(stop: int = 5):
        for i in range(stop):
            made.append(i)
            yield i

    table = Found(results(), lambda i: [{"number": i}] * 2)
    assert repr(table) == "<Found [], more are found when they are asked for>"
    assert (table[1], made) == (1, [0, 1])
    first, second = iter(table), iter(table)
    assert [next(first), next(first), next(first), next(second)] == [0, 1, 2, 0]
    assert made == [0, 1, 2]
    assert (list(table), len(table), table[-1], table[1:3], made) == ([*range(5)], 5, 4, [1, 2], [*range(5)])
    assert len(table.rows()) == 10
    assert table == [*range(5)] != Found([1], lambda i: [])
    assert (repr(table), repr(Found([], list))) == ("<Found [0, 1, 2, … (5 so far)]>", "<Found []>")
    assert repr(Found([1, 2, 3, 4], lambda i: [])) == "<Found [1, 2, 3, … (4 so far)]>"
    made.clear()
    again = Again(5, results, lambda i: [{"number": i}])
    assert repr(again) == "<Found 5, each when it is asked for>"
    assert (again[1], len(again), list(again), again[-1]) == (1, 5, [*range(5)], 4)
    assert made == [0, 1, *range(5), *range(5)]


def test_an_error_is_not_lost_where_the_length_is_asked_for_first():
    found = tt.effects(copied(5, 6, 5), "head", metric=lambda trace: trace["1.output"] + "none")
    for _ in range(2):
        with pytest.raises(TypeError):  # np.exceptions.UFuncTypeError
            list(found)
    with pytest.raises(TypeError):
        found.rows()


BOTH = STORY.trace(["The fox found a shell", "A crow"])
OF_A_SENTENCE = {
    "effects": lambda trace, **item: tt.effects(trace, "head", **item)[0][1].divergence,
    "attribute": lambda trace, **item: tt.attribute(trace, 40, **item).logit,
    "measure": lambda trace, **item: Metric("logit", (40,)).measure(trace, **item),
    "logit_lens": lambda trace, **item: tt.logit_lens(trace, **item)[-1].probabilities[1, 0],
    "head_lens": lambda trace, **item: tt.head_lens(trace, 1, **item)[0].logits[7],
    "rollout": lambda trace, **item: tt.rollout(trace, **item)[1, 0],
    "explain": lambda trace, **item: trace.explain("output.logits", row=1, column=3, **item).stored,
    "window": lambda trace, **item: trace.window("output.logits", (range(1, 2), range(3, 4)), **item)[0, 0],
    "blocks": lambda trace, **item: next(trace.blocks("output.logits", **item))[1][1, 3],
    "gradients_of_cell": lambda trace, **item: tt.gradients_of_cell(trace, "output.logits", (1, 3), **item).loss,
    "slope": lambda trace, **item: Metric("loss", (40,)).slope(trace, **item)[1, 3],
    "gradients_of": lambda trace, **item: tt.gradients_of(trace, Metric("logit", (40,)), **item).loss,
    "figure": lambda trace, **item: tt.figure(trace, "0.output", **item).view.window(range(1), range(1))[0, 0],
}


@pytest.mark.parametrize("name", OF_A_SENTENCE)
def test_a_sentence_of_several_is_named(name: str):
    read = OF_A_SENTENCE[name]
    refuses(r"a trace of 2 sentences: name one, as item=0 \(to 1\)", lambda: read(BOTH))
    refuses("there is no sentence 2: items are 0 to 1", lambda: read(BOTH, item=2))
    alone = read(STORY.trace("A crow"))
    assert read(BOTH, item=1) == pytest.approx(alone, abs=1e-4) == read(BOTH, item=-1)
    assert read(STORY.trace(["A crow"])) == pytest.approx(alone, abs=1e-6)


def test_what_is_of_one_sentence_says_so_and_two_have_to_be_as_long():
    for of in (tt.gradient_times_input, tt.integrated_gradients):
        refuses("no input of one sentence", lambda of=of: of(BOTH, Metric("logit", (40,))))
    refuses("trace each alone", lambda: list(tt.sweep(BOTH, BOTH, "layer", Metric("logit", (40,)))))
    refuses("the sentences have 3 and 2 tokens", lambda: list(tt.sweep(copied(5, 6, 5), copied(5, 7), "head", METRIC)))
    dates = Model.load("dates", device="cpu")
    own, other = dates.trace("May 3, 2021"), dates.trace("June 14, 2021")
    assert len(tt.sweep(own, other, "layer", Metric("logit", (3,)))) == 3  # the decoder's tokens are as many


def test_names_may_be_patterns_and_another_stack_named_with_the_kind():
    trace = STORY.trace("The fox")
    assert set(trace.to_dict(["*.0.*.output", "1.output"])) == {
        "decoder.0.self_attention.output",
        "decoder.0.feed_forward.output",
        "1.output",
    }
    assert list(tt.means([trace], ["*.context"])) == [f"decoder.{i}.self_attention.context" for i in range(3)]
    refuses("no step is called", lambda: trace.to_dict(["*.nothing"]))
    program, before_there_was_of = Model.load("dates", device="cpu").program(4, 3), cast("Any", "head:encoder")
    of_encoder = tt.table_of(program, "head", "encoder")
    assert tt.table_of(program, before_there_was_of) == of_encoder != tt.table_of(program, "head")
