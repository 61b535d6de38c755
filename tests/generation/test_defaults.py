"""Settings of generation in a model's folder are read, and those that are not followed are named."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError
from tui_transformer.generation.rules import Defaults, Rules, defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.model import Model


def defaults(family: str, place: Path, generation: dict[str, Any] | None, **config: Any) -> Defaults:
    """Of a family's checkpoint with other files; `config` values of None are left out of `config.json`."""
    raw = json.loads((REFERENCES / family / "config.json").read_text()) | config
    (place / "config.json").write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))
    if generation is not None:
        (place / "generation_config.json").write_text(json.dumps(generation))
    return defaults_of(dataclasses.replace(Model.load(REFERENCES / family, device="cpu"), folder=place))


def test_config_json_says_it_where_there_is_no_other_file(tmp_path: Path) -> None:
    rules = defaults("bart", tmp_path, None, min_length=3, no_repeat_ngram_size=3).rules
    assert rules == Rules((2,), 2, None, (2,), min_length=3, no_repeat_ngram_size=3)


def test_generation_config_stands_alone_but_for_token_ids(tmp_path: Path) -> None:
    read = defaults("bart", tmp_path, {"forced_bos_token_id": 0, "forced_eos_token_id": None}, min_length=3)
    assert read.rules == Rules((2,), 2, 0)
    assert defaults("bart", tmp_path, {"eos_token_id": [2, 7]}).rules.stop_ids == (2, 7)


def test_families_have_rules_where_no_file_says_anything(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("eos_token_id", "forced_eos_token_id", "bad_words_ids"))
    assert defaults("bart", tmp_path, None, **nothing).rules.forced_eos_token_id == (2,)
    assert defaults("t5", tmp_path, None, **nothing).rules == Rules((1,), 0)
    marian = defaults("marian", tmp_path, None, **nothing).rules
    assert marian.bad_words_ids == ((0,),)
    assert marian.forced_eos_token_id == (0,)


def test_marian_forbids_its_padding(tmp_path: Path) -> None:
    assert defaults("marian", tmp_path, None).rules.bad_words_ids == ((0,),)
    assert defaults("marian", tmp_path, {"bad_words_ids": [[4], [5, 6]]}).rules.bad_words_ids == ((4,), (5, 6))


def test_drawing_is_read_with_its_numbers(tmp_path: Path) -> None:
    drawn = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9}
    assert defaults("llama", tmp_path, drawn).settings == Settings(temperature=0.6, top_k=20, top_p=0.9)
    assert defaults("llama", tmp_path, drawn | {"do_sample": False}).settings == Settings(greedy=True)


def test_what_is_not_done_is_said(tmp_path: Path) -> None:
    read = defaults("marian", tmp_path, {"num_beams": 4, "typical_p": 1.0, "guidance_scale": None, "min_p": 0.1})
    assert read.note.startswith("generation_config.json asks for num_beams 4, min_p 0.1, which is not done")
    assert defaults("marian", tmp_path, {"num_beams": 1}).note == ""


def test_a_built_in_model_stops_at_the_end_of_its_vocabulary() -> None:
    model = Model.load("decoder", device="cpu")
    assert model.vocabulary is not None
    end = model.vocabulary.end_id
    assert defaults_of(model) == Defaults(Rules(() if end is None else (end,)), Settings(greedy=True))


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({"eos_token_id": "x"}, "eos_token_id 'x' is not a token ID"),
        ({"bad_words_ids": [3]}, "bad_words_ids [3] is not a list of lists"),
        ({"repetition_penalty": 0}, "repetition_penalty 0 is not a number above 0"),
        ({"min_length": -1}, "min_length -1 is not a whole number"),
        ({"forced_bos_token_id": 9999}, "forced_bos_token_id 9999 is outside the vocabulary of 360"),
        ({"do_sample": True, "top_p": 3}, "top_p 3 is not above 0 and at most 1"),
    ],
)
def test_a_value_that_cannot_be_is_one_line(generation: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        defaults("bart", tmp_path, generation)
    assert "generation_config.json: " in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    shutil.copy(REFERENCES / "bart" / "config.json", tmp_path)
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        defaults_of(dataclasses.replace(Model.load(REFERENCES / "bart", device="cpu"), folder=tmp_path))
