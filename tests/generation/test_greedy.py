"""Greedy texts are those of another implementation.

`references/<family>/greedy.json` was made once, from the checkpoint beside it, by what its `made_by` says: the library
transformers 5.23.0 on torch 2.15.0, in float64. `settings` were in a `generation_config.json` beside the token IDs of
`config.json`; without any, there was no such file. Texts that begin with a source are those of an encoder–decoder.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from reference import REFERENCES

from tui_transformer.generation.rules import START, STOP, defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

FAMILIES = ("gpt2", "gpt_neox", "llama", "qwen2", "qwen3", "bart", "marian", "t5")
WINDOWS = ("mistral-window", "qwen2-window")
COPIED = (STOP, START, "forced_eos_token_id")


def cases(family: str) -> list[dict[str, Any]]:
    return json.loads((REFERENCES / family / "greedy.json").read_text())["cases"]


def folder_with(family: str, settings: dict[str, Any], place: Path) -> Path:
    """A `config.json`, and a `generation_config.json` with the settings."""
    folder = place / family
    folder.mkdir(exist_ok=True)
    shutil.copy(REFERENCES / family / "config.json", folder)
    raw = json.loads((folder / "config.json").read_text())
    tokens = {key: raw[key] for key in COPIED if raw.get(key) is not None}
    (folder / "generation_config.json").write_text(json.dumps(tokens | settings))
    return folder


def written(model: Model, case: dict[str, Any], settings: Settings) -> list[int]:
    writer = Writer(model, settings, defaults_of(model).rules, source=case.get("source", ()))
    *_, last = writer.run(writer.begin(case.get("prompt", ())))
    return list(last.written)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", [*FAMILIES, *WINDOWS])
def test_greedy_text_is_the_references(family: str, dtype: str) -> None:
    model = Model.load(REFERENCES / family, device="cpu", dtype=dtype)
    for case in cases(family):
        most = case["max_new_tokens"]
        if not case["settings"]:
            assert written(model, case, Settings(greedy=True, max_new_tokens=most)) == case["written"], case
            assert written(model, case, Settings(top_k=1, seed=3, max_new_tokens=most)) == case["written"], case
        if not case["settings"] and most == 12:
            uncached = Settings(greedy=True, max_new_tokens=most, use_cache=False)
            assert written(model, case, uncached) == case["written"], case


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_under_the_rules_of_a_folder_are_the_references(family: str, tmp_path: Path) -> None:
    model = Model.load(REFERENCES / family, device="cpu", dtype="float64")
    for case in cases(family):
        if case["settings"]:
            there = dataclasses.replace(model, folder=folder_with(family, case["settings"], tmp_path))
            settings = Settings(greedy=True, max_new_tokens=case["max_new_tokens"])
            assert written(there, case, settings) == case["written"], case


def test_rules_are_exercised() -> None:
    """The texts under settings differ from those without: the rules had something to do."""
    for family in FAMILIES:
        plain = {str(case.get("source", case.get("prompt"))): case["written"] for case in cases(family)[8:12]}
        others = cases(family)[12:]
        changed = [case for case in others if case["written"] != plain[str(case.get("source", case.get("prompt")))]]
        assert len(changed) > len(others) // 2
