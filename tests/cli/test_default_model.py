"""Which model is meant where none is named: the same one in the explorer and in every command."""

from __future__ import annotations

import json

import pytest
from command_line import Run

from tui_transformer.cli import options
from tui_transformer.cli.generate import usual
from tui_transformer.cli.options import SIZES, Flags

READ = {"text": "a", "ids": "4,5", "cut": True, "device": "cpu", "dtype": "float64", "budget": "0"}
"""Options for the text of a model, and for its computation."""

GIVEN_SIZES = dict.fromkeys(SIZES, 2)


@pytest.mark.parametrize(("name", "value"), READ.items())
def test_what_a_model_reads_and_how_it_is_computed_leaves_the_trained_one(name: str, value: object) -> None:
    assert Flags().options().model == "question"
    assert Flags(**{name: value}).options().model == "question"


@pytest.mark.parametrize(("name", "value"), {**GIVEN_SIZES, "vocab": "dog", "seed": 3}.items())
def test_what_only_random_weights_have_means_the_built_in_encoder(name: str, value: object) -> None:
    assert Flags(**{name: value}).options().model == "encoder"
    assert Flags(**{name: value}, text="a dog").options().model == "encoder"


def test_a_model_that_is_named_is_taken() -> None:
    assert Flags(model="decoder", layers=2).options().model == "decoder"
    assert Flags(model="story", text="a").options().model == "story"


def test_a_text_is_written_on_by_the_trained_writer_or_a_decoder_of_the_sizes_that_were_given() -> None:
    assert (usual(Flags()), usual(Flags(text="a")), usual(Flags(seed=3))) == ("story", "story", "story")
    assert (usual(Flags(layers=2)), usual(Flags(vocab="dog"))) == ("decoder", "decoder")


def test_a_command_answers_with_the_trained_model(run: Run) -> None:
    said = ("--text", "where did the old sailor hide the map ?", "--top", "1", "--format", "json")
    assert [row["word"] for row in json.loads(run("answer", *said).out)] == ["question"]


@pytest.mark.parametrize("command", ["show", "answer", "generate"])
def test_the_help_says_which(run: Run, command: str) -> None:
    assert options.USUAL == "question"
    said = " ".join(run(command, "--help").out.split())
    assert "default: question, in generate story; with a size, --vocab or --seed encoder" in said
