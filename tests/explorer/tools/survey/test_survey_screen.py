"""The results of a survey in the explorer: tables in order, and the way to the text where something is strongest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, SMALL, WIDE, exploring

from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.survey.measures import Asked, Item, survey
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.analysis.survey.table import Example, Origin, examples, rows
from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.survey import (
    ExamplesScreen,
    Survey,
    SurveyScreen,
    is_of,
    name,
    open_results,
    position_of,
    session_of,
)
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.results import Results, read_results, write_results

TEXTS = (
    "The fox found a shell . The fox found a stone .",
    "A crow [red]\x1b[31m",
    "Once there was a small girl called Mira .",
)


@pytest.fixture(scope="module")
def story() -> Model:
    return Model.load("story", device="cpu")


@pytest.fixture(scope="module")
def results(story: Model) -> Results:
    items = [Item(number, Source("corpus.txt", number + 1, text)) for number, text in enumerate(TEXTS)]
    sums = survey(story, items, Asked(("previous", "first", "neurons", "lens", "context"), top=2))
    return Results.of(list(rows(sums, Origin("story"))), list(examples(sums, Origin("story"))))


@pytest.fixture(scope="module")
def path(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("surveys") / "survey.json"
    write_results(path, results)
    return path


async def test_heads_are_sorted_and_an_example_opens_where_it_is_strongest(path: Path, results: Results):
    (path.parent / "a.csv").write_text("one,two\n1,2\n", encoding="utf-8")
    async with exploring(WIDE, model="question") as explorer:
        await explorer.open("survey")
        # a file that is no survey keeps the prompt
        await explorer.answer(str(path.parent / "a.csv"))
        await explorer.shown("not the result")
        await explorer.answer(str(path))
        await explorer.shown("survey of story", "highest first", "table 1 of")
        screen = explorer.screen(SurveyScreen)
        while screen.table.measure != "previous":
            await explorer.press("r")
        await explorer.shown("previous · decoder self-attention")
        best = max((row for row in results.rows if row.measure == "previous"), key=lambda row: row.mean or 0.0)
        assert screen.selected == best
        await explorer.press("ctrl+r")
        assert screen.selected.mean == min(row.mean for row in screen.table.rows)
        # an example
        await explorer.press("ctrl+r", "enter")
        await explorer.shown("strongest of", "corpus.txt:")
        assert isinstance(explorer.app.screen, ExamplesScreen)
        example = explorer.app.screen.selected
        await explorer.leave("enter")
        assert explorer.session.model.name == "story"
        assert explorer.session.text == example.text
        place = explorer.position.place
        assert explorer.stop == f"decoder.{example.layer}.self_attention.weights"
        assert (place.head, place.row) == (example.head, example.position)
        assert explorer.session.trace[explorer.stop][place.head, place.row, place.column] >= example.value
        await explorer.press("u")
        assert explorer.session.model.name == "question"


async def test_the_next_part_another_measure_and_a_survey_without_examples(path: Path, results: Results):
    async with exploring(NARROW, model="story") as explorer:
        await explorer.open("survey")
        await explorer.answer(str(path))
        await explorer.shown("survey of story")
        assert "mean over the texts" in explorer.text
        assert "enter: texts where it is strongest · r: the next measure · f: the next part" in explorer.text
        assert "full bar 1" in explorer.text
        first = explorer.app.screen.table.part
        await explorer.press("f")
        assert explorer.app.screen.table.part != first
        await explorer.prompt("ctrl+f", "nothing")
        await explorer.shown("no measure here is called 'nothing'")
        await explorer.answer("lens:dep")
        assert (await explorer.front(SurveyScreen)).table.measure == "lens:depth"
        await explorer.leave()
        # of one measure there is no next one, and of one part neither
        alone = tuple(row for row in results.rows if row.measure == "previous")
        open_results(explorer.parts.port, Results.of(alone, results.examples))
        await explorer.front(SurveyScreen)
        await explorer.shown("enter: texts where it is strongest  ")
        await explorer.press("escape")
        # without examples
        write_results(path.parent / "rows.csv", Results.of(results.rows, ()))
        await explorer.resize(*SMALL)
        open_results(explorer.parts.port, read_results(path.parent / "rows.csv"))
        await explorer.front(SurveyScreen)
        await explorer.press("enter")
        assert "no examples are kept" in explorer.app.messages.text


def test_every_kind_of_example_has_a_cell(results: Results, story: Model):
    for measure in ("context", "neurons", "lens:depth", "lens:agreement", "previous"):
        example = next(each for each in results.examples if each.measure == measure)
        trace = story.trace(example.text)
        at = position_of(trace, example)
        assert trace.program.step(at.stop)
        assert at.place.row == example.position
        if measure == "neurons":
            assert trace[at.stop][at.place.row, at.place.column] == example.value
        if measure == "context":
            length = np.linalg.norm(trace[at.stop][at.place.head, at.place.row].astype(np.float64))
            assert length == pytest.approx(example.value)


@pytest.mark.parametrize(("model", "first"), [("story", "embedding.output"), ("dates", "decoder.embedding.output")])
def test_the_lens_opens_at_the_depth_that_it_names(model: str, first: str):
    trace = Model.load(model, device="cpu").trace("2 March")

    def opened(layer: int | None) -> str:
        example = Example(model, "logit lens", layer, None, None, "lens:agreement", 1, 1.0, "a.txt", 1, 1, "2 March")
        return position_of(trace, example).stop

    layers = [trace.program.step(f"decoder.{layer}.output").name for layer in range(2)]
    assert [opened(layer) for layer in (-1, 0, 1)] == [first, *layers]
    last = lens_of(trace.program).depths[-1].step
    assert opened(None) == last
    with pytest.raises(InputError, match="the model has no layer 9"):
        opened(9)


def test_the_model_of_a_survey_is_known_again(results: Results, story: Model, tmp_path: Path):
    example = results.examples[0]
    assert is_of(story, example)
    assert is_of(story, replace(example, model=str(story.folder)))
    for other in ({"model": "question"}, {"model": str(tmp_path)}, {"dtype": "float64"}, {"vocab": "dog"}):
        assert not is_of(story, replace(example, **other))


def test_random_weights_are_drawn_again_from_the_seed_in_the_precision_and_with_the_words():
    origin = Origin("encoder", "dog", 3, "float64")
    model = Model.load("encoder", vocabulary="dog", seed=3, dtype="float64", device="cpu")
    items = [
        Item(number, Source("a.txt", number + 1, text))
        for number, text in enumerate(("a dog bites man", "man bites a dog"))
    ]
    example = next(examples(survey(model, items, Asked(("previous",), top=1)), origin))
    before = open_session(ModelOptions("encoder", device="cpu"))
    session = session_of(before, example)
    assert (session.model.seed, session.model.backend.dtype.name) == (3, "float64")
    place = position_of(session.trace, example)
    row = session.trace[place.stop][place.place.head, place.place.row]
    assert row[place.place.row - 1] == example.value


def test_tables_are_those_of_the_file(results: Results):
    tables = Survey(results).tables
    assert sum(len(table.rows) for table in tables) == len(results.rows)
    wanted = {"previous", "first", "neurons", "lens:depth", "lens:agreement", "context"}
    assert {table.measure for table in tables} == wanted


def test_an_example_of_a_feature_opens_at_what_its_dictionary_reads(story: Model):
    example = Example(
        "story", "decoder.1.output", 1, None, None, "features", 1, 2.5, "a.txt", 1, 3, TEXTS[0], feature=17
    )
    trace = story.trace(TEXTS[0])
    assert position_of(trace, example).place.row == 3
    assert position_of(trace, example).stop == trace.program.step("decoder.1.output").name
    assert name(example) == "layer 1 · feature 17"
