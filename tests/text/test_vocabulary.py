"""Vocabularies: what their files may look like, what is refused, and how words are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_transformer.errors import InputError
from tui_transformer.text import files
from tui_transformer.text.dispatch import load_vocabulary
from tui_transformer.text.vocabulary import built_in_vocabularies, built_in_vocabulary, parse_vocabulary

PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nwave\n##s\nShore\n"


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def one_line(error: pytest.ExceptionInfo[InputError]) -> str:
    message = str(error.value)
    assert message.isprintable()
    return message


@pytest.mark.parametrize(
    ("text", "words", "repeated"),
    [
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
    ],
)
def test_a_word_list_gives_the_words_in_order(text: str, words: tuple[str, ...], repeated: int) -> None:
    made = parse_vocabulary(text, "list")
    assert (made.words, made.repeated, made.kind) == (words, repeated, "words")
    assert made.unknown_id == 0


def test_a_word_piece_file_keeps_its_lines_as_ids() -> None:
    made = parse_vocabulary(PIECES, "pieces")
    assert made.kind == "wordpiece"
    assert made.words == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "wave", "##s", "Shore")
    assert (made.unknown_id, made.pad_id) == (1, 0)


def test_a_word_piece_file_keeps_blank_and_repeated_lines() -> None:
    made = parse_vocabulary("[UNK]\r\n\r\na\r\n##b\r\na\r\n", "pieces")
    assert made.words == ("[UNK]", "", "a", "##b", "a")
    assert (made.repeated, made.ids["a"]) == (1, 4)


def test_a_word_piece_keeps_the_white_space_before_it() -> None:
    made = parse_vocabulary("[UNK]\n\u3000\n\ta\n##b \n a\na", "pieces")
    assert made.words == ("[UNK]", "", "\ta", "##b", " a", "a")
    assert made.repeated == 0


def test_special_words_are_known_by_their_ids() -> None:
    made = parse_vocabulary("[CLS] a [PAD] [cls] [other]", "list")
    assert made.special_ids == {0, 1, 3}
    assert made.pad_id == 3
    assert parse_vocabulary("a", "list").pad_id is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine holds no words"),
        (" \n\t", "mine holds no words"),
        ("\ufeff", "mine holds no words"),
        ("a " + "b" * 1001, "mine holds an entry of 1,001 characters"),
        ("wave\n##s\n", "mine holds word pieces (##) but no [UNK]: add"),
    ],
)
def test_unusable_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_vocabulary(text, "mine")
    assert message in one_line(error)


@pytest.mark.parametrize(("text", "size"), [("a b c d", 5), ("[UNK]\na\n##b\nc", 4)])
def test_too_many_entries_are_refused(text: str, size: int) -> None:
    with pytest.raises(InputError, match="more than 3 entries"):
        parse_vocabulary(text, "mine", most=3)
    assert parse_vocabulary(text + "\n", "mine", most=4).size == size


def test_the_word_of_an_id() -> None:
    made = parse_vocabulary("the waves", "list")
    assert made.word(2) == "waves"


@pytest.mark.parametrize("token_id", [-1, 3])
def test_an_id_outside_is_refused(token_id: int) -> None:
    with pytest.raises(InputError, match=f"ID {token_id} is not in the vocabulary list: use 0 to 2"):
        parse_vocabulary("the waves", "list").word(token_id)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("art", ["art", "artist", "Art2", "start", "party", "##art"]),
        (" ART ", ["art", "artist", "Art2", "start", "party", "##art"]),
        ("art2", ["Art2"]),
        ("[pad]", ["[PAD]"]),
        ("##", ["##art"]),
        ("zebra", []),
    ],
)
def test_search_puts_the_word_first_then_beginnings(query: str, wanted: list[str]) -> None:
    made = parse_vocabulary("[UNK]\nstart\nartist\n[PAD]\nparty\nart\n##art\nArt2\nshore", "pieces")
    assert [made.word(token_id) for token_id in made.search(query)] == wanted


def test_an_empty_query_finds_everything() -> None:
    assert parse_vocabulary("a b", "list").search(" ") == (0, 1, 2)


@pytest.mark.parametrize("name", built_in_vocabularies())
def test_every_built_in_vocabulary_opens(name: str) -> None:
    made = load_vocabulary(name)
    assert (made.name, made.kind, made.repeated, made.words[0]) == (name, "words", 0, "[UNK]")
    assert all(made.rule.form(word) in made.ids for word in made.words if not word.startswith("["))


def test_the_built_in_vocabularies() -> None:
    assert built_in_vocabularies() == ("deutsch", "dog", "english", "nation", "waves")
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


def test_a_built_in_name_comes_before_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "waves", b"red green")
    monkeypatch.chdir(tmp_path)
    assert load_vocabulary("waves").ids["shore"] == 6
    assert load_vocabulary("./waves").ids["red"] == 1


@pytest.mark.parametrize("folder", ["installed", "checkout"])
def test_the_installed_lists_come_before_those_of_a_checkout(folder: str, tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / folder).mkdir(exist_ok=True)
    write(tmp_path / folder / "mine.txt", b"a")
    folders = (tmp_path / "installed", tmp_path / "checkout")
    assert built_in_vocabularies(folders) == ("mine",)
    assert built_in_vocabulary("mine", folders).path == tmp_path / folder / "mine.txt"


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
    with pytest.raises(InputError) as error:
        load_vocabulary(name)
    assert message in one_line(error)


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
    with pytest.raises(InputError) as error:
        load_vocabulary(path)
    assert f"{path} {message}" in one_line(error)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.txt does not exist"):
        load_vocabulary(tmp_path / "absent.txt")
    with pytest.raises(InputError, match="is a folder: name a file in it"):
        load_vocabulary(str(tmp_path))


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be the path of a file"):
        load_vocabulary("./a\x00b")
    with pytest.raises(InputError, match="cannot be read"):
        load_vocabulary("./" + "x" * 1000)
    with pytest.raises(InputError, match="does not exist"):
        load_vocabulary("~nobody-by-this-name/words.txt")


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe or a device"):
        load_vocabulary(tmp_path / "pipe")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(files.MAX_BYTES + 1)
    with pytest.raises(InputError, match="is larger than 64 MiB"):
        load_vocabulary(path)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "mine.txt", b"a")
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InputError, match="may not be read: change its permissions"):
        load_vocabulary(path)


def test_a_file_name_is_shown_harmlessly(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load_vocabulary(tmp_path / "\x1b[31m.txt")
    assert "␛[31m.txt does not exist" in one_line(error)


def test_a_quarter_of_a_million_words_are_found(tmp_path: Path) -> None:
    path = write(tmp_path / "many.txt", "\n".join(f"wört{i}" for i in range(250_000)).encode())
    made = load_vocabulary(path)
    assert made.ids["wört249999"] == 250_000
    assert made.search("t12345")[0] == made.ids["wört12345"]
