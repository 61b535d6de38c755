"""The models that come with the program: they load, are small, and do what is written down of them."""

from __future__ import annotations

import re
import runpy
from functools import cache
from itertools import islice

import pytest

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.head_measures import layer_measures
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.loop import Measured
from tui_transformer.learning.recipes import RECIPES
from tui_transformer.model import Model
from tui_transformer.model.local_models import trained_models
from tui_transformer.trained import HERE, about
from tui_transformer.trained.__main__ import measure

FRESH = 7
"""A seed that neither the recipes nor what is written down used."""
LINES = {"copy": 200, "dates": 200, "question": 400, "story": 40}
MOST_BYTES = 3_000_000


@cache
def model(name: str) -> Model:
    return Model.load(name, device="cpu")


@cache
def measured(name: str) -> Measured:
    return measure(name, model(name), LINES[name], FRESH)


def induction(of: Model, ids: list[int]) -> float:
    """The highest induction score of a head."""
    trace = of.trace(ids=ids)
    layers = (layer_measures(trace, step, Reader(of.vocabulary)) for step in attentions(trace.program))
    return max(max(layer.values["induction"]) for layer in layers)


def test_there_is_a_small_model_for_every_recipe_found_through_a_link_too(tmp_path):
    assert trained_models() == RECIPES
    assert sum(path.stat().st_size for name in RECIPES for path in (HERE / name).rglob("*.*")) <= MOST_BYTES
    link = tmp_path / "linked"
    link.symlink_to(HERE, target_is_directory=True)
    assert runpy.run_path(str(link / "__init__.py"))["HERE"] == HERE


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_written_down_is_of_this_model(name):
    facts = about(name)
    assert facts["weights"] == model(name).program(1, 1).weight_count()
    files = (path for path in (HERE / name).iterdir() if path.is_file() and path.name != "about.toml")
    assert facts["bytes"] == sum(path.stat().st_size for path in files)
    assert facts["minutes"] <= 15
    assert f"--recipe {name} " in facts["command"]


@pytest.mark.parametrize("name", RECIPES)
def test_fresh_lines_are_predicted_as_well_as_is_written_down(name):
    facts, again = about(name), measured(name)
    assert again.loss == pytest.approx(facts["loss"], rel=0.1, abs=0.01)
    assert again.accuracy == pytest.approx(facts["accuracy"], abs=0.02)
    assert again.exact == pytest.approx(facts["exact"], abs=0.02)
    assert again.perplexity == pytest.approx(Measured(facts["loss"], 0.0, 0).perplexity, rel=0.1)
    assert name != "question" or again.accuracy > 0.97


def test_dates_are_written_right_one_character_after_another():
    of, settings = model("dates"), Settings(greedy=True)
    wrong = []
    for line in lines_of("dates", 30, FRESH):
        source, wanted = line.split("\t")
        writer = Writer(of, settings, source=of.encode(source).ids)
        *_, last = writer.run(writer.begin(writer.prompt().ids))
        written = "".join(of.word(token) for token in last.written if token != of.vocabulary.end_id)
        if written != wanted:
            wrong.append((source, written))
    assert not wrong


def test_the_copy_model_has_induction_heads_and_an_untrained_one_has_none():
    trained = model("copy")
    sizes = {name: getattr(trained.config, name) for name in ("layers", "d_model", "heads", "positions", "max_length")}
    untrained = Model.load("decoder", vocabulary=trained.vocabulary, device="cpu", **sizes)
    for line in lines_of("copy", 5, FRESH):
        ids = list(trained.encode(line).ids)
        assert induction(trained, ids) > 0.4
        assert induction(untrained, ids) < 0.2


@pytest.mark.parametrize("seed", [0, 3])
def test_a_story_is_of_words_of_its_corpus(seed):
    of = model("story")
    known = {word for line in lines_of("story", 3000) for word in re.findall(r"\w+", line)}
    writer = Writer(of, Settings(greedy=False, seed=seed, max_new_tokens=80))
    states = writer.run(writer.begin(writer.prompt("Once there was").ids))
    text = of.tokenizer.decode([*islice(states, 81)][-1].ids)
    words = re.findall(r"\w+", text)[:-1]
    assert len(words) > 20
    assert set(words) <= known
