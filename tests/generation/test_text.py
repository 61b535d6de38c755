"""Text that a model writes: at once, streaming, and greedily as other programs do."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from reference import REFERENCES, in_float64
from refusing import refuses

from tui_transformer import Add, InputError, Scale, generate
from tui_transformer.generation.rules import START, STOP, defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.text import TextStream
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model
from tui_transformer.text.word_tokenizers import WordTokenizer

# A text that is written on in one call, beside the writer and its parts


def test_a_text_is_what_the_writer_writes_behind_it():
    model = Model.load("story", device="cpu")
    text = generate(model, "Once there was", greedy=True, max_new_tokens=8)
    writer = Writer(model, Settings(greedy=True, max_new_tokens=8))
    *_, last = writer.run(writer.begin(writer.prompt("Once there was").ids))
    assert text == model.tokenizer.decode(last.written)
    assert text == generate(model, list(writer.prompt("Once there was").ids), greedy=True, max_new_tokens=8)
    copy, ids = Model.load("copy", device="cpu"), [5, 6, 7, 8, 5, 6]
    texts = [generate(copy, each, greedy=True, max_new_tokens=6) for each in (ids, [*ids, 0, 0], [0, *ids])]
    assert texts[0] == texts[1] == texts[2]
    edits = [Add("1.output", 3.0), Scale("2.self_attention.context", 0.0, heads=1)]
    assert generate(model, "Once there was", greedy=True, max_new_tokens=8, edits=edits) != text
    drawn = [generate(model, "Once", seed=seed, temperature=2, max_new_tokens=8) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_an_encoder_decoder_writes_from_its_source_and_what_cannot_be_is_said():
    model = Model.load("dates", device="cpu")
    assert generate(model, source="May 3, 2021", greedy=True) == "2021-05-03"
    refuses("its encoder reads: give one", lambda: generate(model, "20"))
    model = Model.load("story", device="cpu")
    refuses("no setting is called tokens: use temperature", lambda: generate(model, "Once", tokens=3))
    refuses("goes on from the prompt", lambda: generate(model, "Once", source="Once there was"))
    refuses("nothing to write on from", lambda: generate(model, []))
    with pytest.raises(InputError):
        generate(Model.load(REFERENCES / "bert"), [5, 6])


# Text comes as soon as it is whole
GPT2 = Model.load(REFERENCES / "gpt2")


def pieces(model: Model, text: str) -> list[str]:
    """The text that every token adds, and the text that is left at the end."""
    stream = TextStream(model)
    return [*map(stream.add, model.tokenizer.encode(text).ids), stream.end()]


def test_half_a_character_is_held_back_until_it_is_whole_or_the_text_ends() -> None:
    added = pieces(GPT2, "a 漢é🙂 z")
    assert "".join(added) == "a 漢é🙂 z"
    assert "" in added
    assert not any("\ufffd" in piece for piece in added)
    assert "".join(pieces(GPT2, "a\nb\x1b[31mc\x9b")) == "a\nb␛[31mc\\x9b"
    # one that is never whole
    stream, ids = TextStream(GPT2), GPT2.tokenizer.encode("a漢").ids
    assert [stream.add(ids[0]), stream.add(ids[1])] == ["a", ""]
    assert stream.end() == "\ufffd"
    # a prompt that ends in a half
    stream = TextStream(GPT2, ids[:-1])
    assert stream.prompt() == "a"
    assert stream.add(ids[-1]) == "漢"


def test_spaces_between_words_are_where_they_belong() -> None:
    model = Model.load("decoder")
    assert pieces(model, "the waves crashed, the shore!")[:3] == ["the", " waves", " crashed"]
    stream = TextStream(model, model.encode("the waves").ids)
    assert stream.prompt() == "the waves"
    assert stream.add(model.encode("shore").ids[0]) == " shore"
    assert stream.add(model.encode("!").ids[0]) == "!"
    # without words there are IDs
    stream = TextStream(Model.load(REFERENCES / "vanilla-decoder"), (5, 6))
    assert [stream.add(7), stream.add(8)] == [" 7", " 8"]


def test_start_and_end_of_a_target_are_no_text_and_a_space_after_them_stays() -> None:
    model = Model.load(REFERENCES / "t5")
    the, sea, end = (model.tokenizer.encode(text).ids[:-1] for text in ("the", "sea", "</s>"))
    for ids in (model.encode("the sea").ids, (*the, *end, *end, *sea)):
        stream = TextStream(model, (0,))
        assert stream.prompt() == ""
        assert "".join(map(stream.add, ids)) + stream.end() == "the sea"


@dataclass(frozen=True)
class Recording(WordTokenizer):
    """A tokenizer that notes how many tokens it decodes at a time."""

    lengths: list[int] = field(default_factory=list)

    def decode(self, ids: Sequence[int]) -> str:
        self.lengths.append(len(ids))
        return super().decode(ids)


def test_a_token_is_decoded_with_the_last_ones_only_however_long_the_text_is() -> None:
    model = Model.load("decoder")
    tokenizer = Recording(model.tokenizer.vocabulary)
    stream = TextStream(replace(model, tokenizer=tokenizer))
    for token in [1, 2, 3, 4] * 50:
        stream.add(token)
    assert max(tokenizer.lengths) == 2


# Greedy texts are those of another implementation
RULED = ("gpt2", "bart", "marian", "t5")
FAMILIES = (*RULED, "gpt_neox", "llama", "qwen2", "qwen3", "mistral-window", "qwen2-window")
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
@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_text_is_the_references(family: str, dtype: str) -> None:
    model = Model.load(REFERENCES / family, device="cpu", dtype=dtype)
    for case in cases(family):
        most = case["max_new_tokens"]  # long texts with a cache, short ones without
        if not case["settings"]:
            settings = Settings(greedy=True, max_new_tokens=most, use_cache=most > 12)
            assert written(model, case, settings) == case["written"], case


@pytest.mark.parametrize("family", RULED)
def test_texts_under_the_rules_of_a_folder_are_the_references(family: str, tmp_path: Path) -> None:
    model = in_float64(family)
    for case in cases(family):
        if case["settings"]:
            there = dataclasses.replace(model, folder=folder_with(family, case["settings"], tmp_path))
            settings = Settings(greedy=True, max_new_tokens=case["max_new_tokens"])
            assert written(there, case, settings) == case["written"], case
    # the rules had something to do
    plain = {str(case.get("source", case.get("prompt"))): case["written"] for case in cases(family)[8:12]}
    others = cases(family)[12:]
    changed = [case for case in others if case["written"] != plain[str(case.get("source", case.get("prompt")))]]
    assert len(changed) > len(others) // 2
