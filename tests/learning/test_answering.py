"""Where a trained model answers, as its folder says."""

from __future__ import annotations

import json

import pytest

from tui_transformer.learning.recipes import answers_first
from tui_transformer.trained import HERE


@pytest.mark.parametrize(("name", "first"), [("question", True), ("story", False), ("dates", False)])
def test_a_model_that_comes_with_the_program_answers_as_its_recipe_says(name, first):
    assert answers_first(HERE / name) is first


@pytest.mark.parametrize(("task", "first"), [("classify", True), ("next-word", False)])
def test_a_run_and_its_checkpoints_answer_as_its_settings_say(tmp_path, task, first):
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"task": task}}))
    checkpoint = tmp_path / "checkpoints" / "000200"
    checkpoint.mkdir(parents=True)
    assert answers_first(tmp_path) is first
    assert answers_first(checkpoint) is first


@pytest.mark.parametrize("text", ["", "[]", '{"settings": 3}', "{", '{"settings": {"task": ["classify"]}}'])
def test_a_folder_that_does_not_say_it_answers_everywhere(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    assert not answers_first(tmp_path)
    assert not answers_first(None)
    assert not answers_first(tmp_path / "none")
