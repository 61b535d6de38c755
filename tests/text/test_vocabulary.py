"""Vocabularies: what their files may look like, what is refused, how words are found, and by which rule."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses

import tui_transformer
from tui_transformer.errors import InputError
from tui_transformer.text import files, vocabulary
from tui_transformer.text.build import build_words
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.vocabulary import Vocabulary, built_in_vocabularies, parse_vocabulary
from tui_transformer.text.vocabulary_rules import WordRule
from tui_transformer.text.word_tokenizers import unreachable

PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nwave\n##s\nShore\n"


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def refused(call: Callable[[], object], says: str = "") -> str:
    """The printable line that says why a vocabulary cannot be read."""
    message = refuses(says, call)
    assert message.isprintable()
    return message


def test_a_word_list_gives_the_words_in_order() -> None:
    for text, words, repeated in (
        ("the waves\n\n crashed\t!\r\n", ("[UNK]", "the", "waves", "crashed", "!"), 0),
        ("[UNK] a b", ("[UNK]", "a", "b"), 0),
        ("a [PAD] [UNK] b", ("[UNK]", "a", "[PAD]", "b"), 0),
        ("a b a a", ("[UNK]", "a", "b"), 2),
        ("[UNK] a [UNK]", ("[UNK]", "a"), 1),
        ("The the THE [CLS]", ("[UNK]", "the", "[CLS]"), 2),
        ("\ufeffwaves shore", ("[UNK]", "waves", "shore"), 0),
        ("Größe gro\u0308ße", ("[UNK]", "größe"), 1),
        ("don’t don't", ("[UNK]", "don't"), 1),
        ("# ## ###x y", ("[UNK]", "#", "##", "###x", "y"), 0),
    ):
        made = parse_vocabulary(text, "list")
        assert (made.words, made.repeated, made.kind) == (words, repeated, "words")
        assert made.unknown_id == 0


def test_a_word_piece_file_keeps_its_lines_as_ids_with_the_white_space_before_them() -> None:
    for text, words, repeated in (
        (PIECES, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "wave", "##s", "Shore"), 0),
        ("[UNK]\r\n\r\na\r\n##b\r\na\r\n", ("[UNK]", "", "a", "##b", "a"), 1),
        ("[UNK]\n\u3000\n\ta\n##b \n a\na", ("[UNK]", "", "\ta", "##b", " a", "a"), 0),
    ):
        made = parse_vocabulary(text, "pieces")
        assert (made.words, made.kind, made.repeated) == (words, "wordpiece", repeated)
        assert (made.unknown_id, made.pad_id) == ((1, 0) if text == PIECES else (0, None))
        assert all(made.words[made.ids[word]] == word for word in words if word)


def test_special_words_are_known_by_their_ids() -> None:
    made = parse_vocabulary("[CLS] a [PAD] [cls] [other]", "list")
    assert made.special_ids == {0, 1, 3}
    assert made.pad_id == 3
    assert parse_vocabulary("a", "list").pad_id is None
    assert parse_vocabulary("[PAD]\n[UNK]\na\n", "list").words == ("[PAD]", "[UNK]", "a")  # as they begin the list


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine holds no words"),
        (" \n\t", "mine holds no words"),
        ("\ufeff", "mine holds no words"),
        ("a " + "b" * 1001, "mine holds an entry of 1,001 characters"),
        ("wave\n##s\n", "mine holds word pieces (##) but no [UNK]: add"),
        ("#!vocabulary words split=commas\n[UNK]\na\n", "split"),
        ("#!vocabulary characters split=runs\n[UNK]\na\n", "split"),
    ],
)
def test_unusable_texts_are_refused(text: str, message: str) -> None:
    assert message in refused(lambda: parse_vocabulary(text, "mine"))


def test_too_many_entries_are_refused_and_an_id_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, size in (("a b c d", 5), ("[UNK]\na\n##b\nc", 4)):
        monkeypatch.setattr(vocabulary, "MAX_ENTRIES", 3)
        refuses("more than 3 entries", lambda text=text: parse_vocabulary(text, "mine"))
        monkeypatch.setattr(vocabulary, "MAX_ENTRIES", 4)
        assert parse_vocabulary(text + "\n", "mine").size == size
    made = parse_vocabulary("the waves", "list")
    assert made.word(2) == "waves"
    for token_id in (-1, 3):
        with pytest.raises(InputError, match=f"ID {token_id} is not in the vocabulary list: use 0 to 2"):
            made.word(token_id)


FOUND = {
    "art": ["art", "artist", "Art2", "start", "party", "##art"],
    " ART ": ["art", "artist", "Art2", "start", "party", "##art"],
    "art2": ["Art2"],
    "[pad]": ["[PAD]"],
    "##": ["##art"],
    "zebra": [],
    " ": ["[UNK]", "start", "artist", "[PAD]", "party", "art", "##art", "Art2", "shore"],
}


def test_search_puts_the_word_first_then_beginnings() -> None:
    made = parse_vocabulary("[UNK]\nstart\nartist\n[PAD]\nparty\nart\n##art\nArt2\nshore", "pieces")
    assert {query: [made.word(token_id) for token_id in made.search(query)] for query in FOUND} == FOUND


def test_the_built_in_vocabularies() -> None:
    assert {"deutsch", "dog", "english", "nation", "waves"} <= {*built_in_vocabularies()}
    for name in built_in_vocabularies():
        made = load_vocabulary(name)
        assert (made.name, made.kind, made.repeated, made.words[0]) == (name, "words", 0, "[UNK]")
        assert all(made.rule.form(word) in made.ids for word in made.words if not word.startswith("["))
        assert list(unreachable(made)) == [], "every entry can be written"
    assert load_vocabulary("waves").words[1:] == ("the", "waves", "crashed", "forcefully", "against", "shore", "!")
    assert load_vocabulary("nation").words[:5] == ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "strong")
    assert load_vocabulary("english").size > 1000
    assert load_vocabulary("deutsch").ids.keys() >= {"für", "straße", "über"}


def test_a_path_opens_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "mine.txt", b"\xef\xbb\xbfred green")
    monkeypatch.chdir(tmp_path)
    for where in (path, str(path), "mine.txt", "./mine.txt", Path("mine.txt")):
        made = load_vocabulary(where)
        assert (made.words, made.name) == (("[UNK]", "red", "green"), "mine.txt")
    # a built-in name comes before a file of that name
    write(tmp_path / "waves", b"red green")
    assert load_vocabulary("waves").ids["shore"] == 6
    assert load_vocabulary("./waves").ids["red"] == 1


def test_the_installed_lists_come_before_those_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "FOLDERS", (tmp_path / "installed", tmp_path / "checkout"))
    for folder in ("checkout", "installed"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "mine.txt", b"a")
        assert built_in_vocabularies() == ("mine",)
        assert load_vocabulary("mine").path == tmp_path / folder / "mine.txt"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wavs", "(did you mean waves?): use deutsch, dog, english, nation, waves, or"),
        ("ENGLISH.TXT", "did you mean english?"),
        ("zzz", "called “zzz”: use deutsch"),
        ("", "called “”"),
        ("a\x00b\x1b", "called “a␀b␛”"),
        ("x" * 10_000, "x”: use"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(name: str, message: str) -> None:
    assert message in refused(lambda: load_vocabulary(name))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "holds no words"),
        (b"\xef\xbb\xbf\n", "holds no words"),
        (b"the\x00waves", "is binary (byte 3 is NUL)"),
        ("the".encode("utf-16"), "is binary"),
        (b"\xef\xbb\xbfgr\xfcn", "is not UTF-8 (at byte 5): save it as UTF-8"),
    ],
)
def test_a_bad_file_is_refused_with_its_path(data: bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.txt", data)
    assert f"{path} {message}" in refused(lambda: load_vocabulary(path))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("absent.txt", r"absent\.txt does not exist"),
        ("\x1b[31m.txt", r"␛\[31m\.txt does not exist"),
        ("folder", "is a folder: name a file in it"),
        ("a\x00b", "cannot be the path of a file"),
        ("x" * 1000, "cannot be read"),
        ("~nobody-by-this-name/words.txt", "does not exist"),
        ("pipe", "is a pipe or a device"),
        ("huge.txt", "is larger than 64 MiB"),
    ],
)
def test_what_is_no_file_of_words_is_refused_before_it_is_read(name, says, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    with Path("huge.txt").open("wb") as file:
        file.truncate(files.MAX_BYTES + 1)
    refused(lambda: load_vocabulary(name if name.startswith("~") else f"./{name}"), says)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "mine.txt", b"a")
    monkeypatch.setattr(Path, "open", denied)
    refuses("may not be read: change its permissions", lambda: load_vocabulary(path))


def test_a_quarter_of_a_million_words_are_found(tmp_path: Path) -> None:
    path = write(tmp_path / "many.txt", "\n".join(f"wört{i}" for i in range(250_000)).encode())
    made = load_vocabulary(path)
    assert made.ids["wört249999"] == 250_000
    assert made.search("t12345")[0] == made.ids["wört12345"]


# Words by runs, apostrophes or spaces, in small letters or as written, and as the file says


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
    # the apostrophe is a token where the vocabulary has it
    assert texts(parse_vocabulary("it s '", "w"), "It's") == ["it", "'", "s"]


def test_a_vocabulary_splits_by_the_rule_that_it_was_built_by() -> None:
    for rule, expected in (
        (WordRule(), ["the", "don't", "end", "."]),
        (WordRule("runs"), ["the", "don", "'", "t", "end", "."]),
        (WordRule("words", "kept"), ["The", "don't", "end", "."]),
        (WordRule("spaces"), ["the", "don't", "end."]),
        (WordRule("spaces", "kept"), ["The", "don't", "end."]),
    ):
        built = build_words(["The don't end."], rule=rule).vocabulary
        again = parse_vocabulary(built.file()[1], "again")
        assert again.rule == rule
        assert again.words == built.words
        assert texts(again, "The don't end.") == expected
        assert not any(token.unknown for token in tokenizer_for(again).encode("The don't end.").tokens)


def test_capitals_that_are_kept_tell_words_apart_and_special_words_count_alone_between_spaces() -> None:
    built = build_words(["The the"], rule=WordRule(case="kept")).vocabulary
    assert built.ids["The"] != built.ids["the"]
    assert texts(built, "THE") == ["THE"]
    assert tokenizer_for(built).encode("THE").tokens[0].unknown
    # split at spaces, a text comes back with spaces
    tokenizer = tokenizer_for(build_words(["a . b"], rule=WordRule("spaces")).vocabulary)
    tokens = tokenizer.encode("[BOS] a[BOS] a").tokens
    assert [(token.text, token.special, token.unknown) for token in tokens] == [
        ("[BOS]", True, False),
        ("a[BOS]", False, True),
        ("a", False, False),
    ]
    assert tokenizer.decode(tokenizer.encode("b . a").ids) == "b . a"


def test_entries_that_no_text_can_give_are_told() -> None:
    listed = parse_vocabulary("the words: a-b it's : [CLS] größe :: x2", "w")
    assert list(unreachable(listed)) == ["words:", "a-b", "::"]
    for word in set(listed.words) - set(unreachable(listed)):
        assert texts(listed, word) == [word]
    # it depends on the rule
    listed = parse_vocabulary("#!vocabulary words split=spaces\n[UNK]\nwords:\na-b\ntwo words\n", "w")
    assert list(unreachable(listed)) == ["two words"]
    runs = parse_vocabulary("#!vocabulary words split=runs\n[UNK]\nit's\nit\n", "w")
    assert list(unreachable(runs)) == ["it's"]


def test_the_words_of_the_trained_models_are_split_as_they_were_trained() -> None:
    for name in ("copy", "dates", "question"):
        folder = Path(tui_transformer.__file__).parent / "trained" / name
        vocabulary = load_vocabulary(folder / "vocabulary.txt")
        assert vocabulary.rule == WordRule()
        assert not any("'" in word for word in vocabulary.words)
