"""Words by runs, apostrophes or spaces, in small letters or as written, and as the file says."""

from __future__ import annotations

from pathlib import Path

import pytest

import tui_transformer
from tui_transformer.errors import InputError
from tui_transformer.text.build import build_words
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.vocabulary import Vocabulary, parse_vocabulary
from tui_transformer.text.vocabulary_rules import WordRule
from tui_transformer.text.word_tokenizers import unreachable


def texts(vocabulary: Vocabulary, text: str) -> list[str]:
    return [token.text for token in tokenizer_for(vocabulary).encode(text).tokens]


def test_words_that_an_apostrophe_joins_are_two_where_the_vocabulary_lacks_the_one() -> None:
    tokens = tokenizer_for(parse_vocabulary("it s don't", "w")).encode("It's don’t o'er").tokens
    assert [(token.text, token.start, token.end, token.unknown) for token in tokens] == [
        ("it", 0, 2, False),
        ("s", 3, 4, False),
        ("don't", 5, 10, False),
        ("o", 11, 12, True),
        ("er", 13, 15, True),
    ]


def test_the_apostrophe_between_is_a_token_where_the_vocabulary_has_it() -> None:
    assert texts(parse_vocabulary("it s '", "w"), "It's") == ["it", "'", "s"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (WordRule(), ["the", "don't", "end", "."]),
        (WordRule("runs"), ["the", "don", "'", "t", "end", "."]),
        (WordRule("words", "kept"), ["The", "don't", "end", "."]),
        (WordRule("spaces"), ["the", "don't", "end."]),
        (WordRule("spaces", "kept"), ["The", "don't", "end."]),
    ],
)
def test_a_vocabulary_splits_by_the_rule_that_it_was_built_by(rule: WordRule, expected: list[str]) -> None:
    built = build_words(["The don't end."], rule=rule).vocabulary
    again = parse_vocabulary(built.file()[1], "again")
    assert again.rule == rule
    assert again.words == built.words
    assert texts(again, "The don't end.") == expected
    assert not any(token.unknown for token in tokenizer_for(again).encode("The don't end.").tokens)


def test_capitals_that_are_kept_tell_words_apart() -> None:
    built = build_words(["The the"], rule=WordRule(case="kept")).vocabulary
    assert built.ids["The"] != built.ids["the"]
    assert texts(built, "THE") == ["THE"]
    assert tokenizer_for(built).encode("THE").tokens[0].unknown


def test_special_words_count_alone_between_spaces() -> None:
    built = build_words(["a b"], rule=WordRule("spaces")).vocabulary
    tokens = tokenizer_for(built).encode("[BOS] a[BOS] a").tokens
    assert [(token.text, token.special, token.unknown) for token in tokens] == [
        ("[BOS]", True, False),
        ("a[BOS]", False, True),
        ("a", False, False),
    ]


def test_text_split_at_spaces_comes_back_with_spaces() -> None:
    built = build_words(["end . here"], rule=WordRule("spaces")).vocabulary
    tokenizer = tokenizer_for(built)
    assert tokenizer.decode(tokenizer.encode("here . end").ids) == "here . end"


def test_a_plain_list_has_no_header() -> None:
    assert not build_words(["a b"]).vocabulary.file()[1].startswith("#!")


@pytest.mark.parametrize("line", ["#!vocabulary words split=commas", "#!vocabulary characters split=runs"])
def test_a_rule_that_is_not_known_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="split"):
        parse_vocabulary(f"{line}\n[UNK]\na\n", "w")


def test_entries_that_no_text_can_give_are_told() -> None:
    listed = parse_vocabulary("the words: a-b it's : [CLS] größe :: x2", "w")
    assert list(unreachable(listed)) == ["words:", "a-b", "::"]
    for word in set(listed.words) - set(unreachable(listed)):
        assert texts(listed, word) == [word]


def test_what_a_rule_leaves_out_depends_on_it() -> None:
    listed = parse_vocabulary("#!vocabulary words split=spaces\n[UNK]\nwords:\na-b\ntwo words\n", "w")
    assert list(unreachable(listed)) == ["two words"]
    runs = parse_vocabulary("#!vocabulary words split=runs\n[UNK]\nit's\nit\n", "w")
    assert list(unreachable(runs)) == ["it's"]


@pytest.mark.parametrize("name", ["dog", "waves", "nation", "english", "deutsch"])
def test_every_entry_of_the_built_in_vocabularies_can_be_written(name: str) -> None:
    assert list(unreachable(load_vocabulary(name))) == []


@pytest.mark.parametrize("name", ["copy", "dates", "question"])
def test_the_words_of_the_trained_models_are_split_as_they_were_trained(name: str) -> None:
    folder = Path(tui_transformer.__file__).parent / "trained" / name
    vocabulary = load_vocabulary(folder / "vocabulary.txt")
    assert vocabulary.rule == WordRule()
    assert not any("'" in word for word in vocabulary.words)
