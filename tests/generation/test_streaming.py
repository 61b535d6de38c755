"""Text comes as soon as it is whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reference import REFERENCES

from tui_transformer.generation.text import TextStream
from tui_transformer.model import Model
from tui_transformer.text.word_tokenizers import WordTokenizer


def pieces(model: Model, text: str) -> list[str]:
    """The text that every token adds, and the text that is left at the end."""
    stream = TextStream(model)
    assert model.tokenizer is not None
    return [*map(stream.add, model.tokenizer.encode(text).ids), stream.end()]


def test_half_a_character_is_held_back() -> None:
    added = pieces(Model.load(REFERENCES / "gpt2"), "a 漢é🙂 z")
    assert "".join(added) == "a 漢é🙂 z"
    assert "" in added
    assert not any("\ufffd" in piece for piece in added)


def test_a_character_that_is_never_whole_is_shown_at_the_end() -> None:
    model = Model.load(REFERENCES / "gpt2")
    stream = TextStream(model)
    assert model.tokenizer is not None
    first = model.tokenizer.encode("漢").ids[0]
    assert stream.add(first) == ""
    assert stream.end() == "\ufffd"


def test_spaces_between_words_are_where_they_belong() -> None:
    assert pieces(Model.load("decoder"), "the waves crashed, the shore!")[:3] == ["the", " waves", " crashed"]
    model = Model.load("decoder")
    stream = TextStream(model, model.encode("the waves").ids)
    assert stream.prompt() == "the waves"
    assert stream.add(model.encode("shore").ids[0]) == " shore"
    assert stream.add(model.encode("!").ids[0]) == "!"


def test_the_start_and_end_of_a_target_are_no_text() -> None:
    model = Model.load(REFERENCES / "t5")
    stream = TextStream(model, (0,))
    assert stream.prompt() == ""
    ids = model.encode("the sea").ids
    assert "".join(map(stream.add, ids)) + stream.end() == "the sea"


def test_a_model_without_words_gives_ids() -> None:
    stream = TextStream(Model.load(REFERENCES / "vanilla-decoder"), (5, 6))
    assert [stream.add(7), stream.add(8)] == [" 7", " 8"]


def test_ends_of_lines_stay_and_control_characters_do_not() -> None:
    assert "".join(pieces(Model.load(REFERENCES / "gpt2"), "a\nb\x1b[31mc\x9b")) == "a\nb␛[31mc\\x9b"


@dataclass(frozen=True)
class Recording(WordTokenizer):
    """A tokenizer that notes how many tokens it decodes at a time."""

    lengths: list[int] = field(default_factory=list)

    def decode(self, ids: Sequence[int]) -> str:
        self.lengths.append(len(ids))
        return super().decode(ids)


def test_a_token_is_decoded_with_the_last_ones_only() -> None:
    """However long the text is, a token takes the same time."""
    model = Model.load("decoder")
    assert model.tokenizer is not None
    tokenizer = Recording(model.tokenizer.vocabulary)
    stream = TextStream(replace(model, tokenizer=tokenizer))
    for token in [1, 2, 3, 4] * 50:
        stream.add(token)
    assert max(tokenizer.lengths) == 2


def test_a_prompt_that_ends_in_half_a_character_is_completed() -> None:
    model = Model.load(REFERENCES / "gpt2")
    assert model.tokenizer is not None
    ids = model.tokenizer.encode("a漢").ids
    stream = TextStream(model, ids[:-1])
    assert stream.prompt() == "a"
    assert stream.add(ids[-1]) == "漢"


def test_a_space_after_a_token_without_text_stays() -> None:
    model = Model.load(REFERENCES / "t5")
    assert model.tokenizer is not None
    the, sea, end = (model.tokenizer.encode(text).ids[:-1] for text in ("the", "sea", "</s>"))
    stream = TextStream(model, (0,))
    assert "".join(map(stream.add, (*the, *end, *end, *sea))) == "the sea"
