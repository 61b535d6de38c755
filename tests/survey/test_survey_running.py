"""Surveys as they run: from texts to sums, in processes, stopped and taken up."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from refusing import refuses

from tui_transformer import Model, measure_texts
from tui_transformer.analysis.survey.measures import Asked, Item, survey
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.analysis.survey.table import Origin, rows
from tui_transformer.errors import InputError
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.processes import Worker, in_process, in_processes
from tui_transformer.survey.running import Job, run, state_path
from tui_transformer.survey.work import Batch, Work, add_texts, batches, check_files, read_items

# A survey as it goes on: stopped, taken up, refused, and equal to the last bit however it was done
ASKED = Asked(("first", "previous", "neurons"), top=2)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    lines = (f"The fox found {number} shells and {'a stone ' * (number % 5)}." for number in range(50))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def job(corpus: Path, name: str = "out.csv", model: str = "story", asked: Asked = ASKED) -> Job:
    return Job(Work(ModelOptions(model, device="cpu"), asked), (str(corpus),), corpus.with_name(name))


def after(count: int):
    """Says to stop when it was asked so often."""
    asked = iter(range(1000))
    return lambda: next(asked) >= count - 1


def test_a_survey_that_is_stopped_goes_on_to_the_same_bits(corpus: Path):
    whole, all_read = run(job(corpus, "whole.csv"), in_process)
    assert all_read
    assert whole.counts.texts == 50
    for stops in (1, 2):
        sums, all_read = run(job(corpus), in_process, after(stops + (stops > 1)))  # the second time, one is compared
        assert (sums.counts.texts, all_read) == (16 + 32 * (stops - 1), False)
    sums, all_read = run(job(corpus), in_process)
    assert all_read
    assert sums.to_bytes() == whole.to_bytes()


def test_a_survey_that_fails_keeps_what_is_done(corpus: Path):
    def breaking(work: Work, batches: Iterator) -> Iterator[bytes]:
        for number, batch in enumerate(batches):
            if number == 2:
                raise InputError("the third batch is broken")
            yield work.sums(batch)

    corpus.write_text("\n".join(["The fox found a shell ."] * 40), encoding="utf-8")
    refuses("third batch", lambda: run(job(corpus), breaking))
    assert state_path(job(corpus).out).exists()
    assert run(job(corpus), in_process)[0].counts.texts == 40


def test_the_state_of_another_survey_or_of_other_texts_is_refused(corpus: Path):
    run(job(corpus), in_process, after(2))
    refuses("with another measure, top", lambda: run(job(corpus, asked=Asked(("first",))), in_process))
    refuses("with another model", lambda: run(job(corpus, model="question"), in_process))
    corpus.write_text(corpus.read_text("utf-8").replace("found 20 shells", "found 21 shells"), encoding="utf-8")
    refuses("the texts are not those", lambda: run(job(corpus), in_process))
    state_path(job(corpus).out).write_bytes(b"PK no zip")
    refuses("is not the state of a survey: remove", lambda: run(job(corpus), in_process))


def test_the_same_letters_in_other_texts_have_another_digest():
    def digest(*texts: str) -> str:
        made = hashlib.blake2b(digest_size=16)
        add_texts(made, (Item(number, Source("a.txt", number, text)) for number, text in enumerate(texts)))
        return made.hexdigest()

    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "", "c"), digest("ab", "c", "")}) == 5
    assert digest("ab", "c") == digest("ab", "c")


def test_a_model_that_gives_other_numbers_is_refused(corpus: Path, tmp_path: Path):
    folder = tmp_path / "model"
    Model.load("decoder", device="cpu", seed=1, d_model=16, heads=2, d_ff=16).save(folder)
    run(job(corpus, model=str(folder)), in_process, after(2))
    Model.load("decoder", device="cpu", seed=2, d_model=16, heads=2, d_ff=16).save(folder)
    refuses("gives other numbers than before", lambda: run(job(corpus, model=str(folder)), in_process))


class KilledOnce(Worker):
    """A process; the first that is asked for its answer is killed."""

    killed: ClassVar[list[int]] = []

    def answer(self) -> tuple[str, Any] | None:
        if not self.killed:
            self.killed.append(self.process.pid or 0)
            self.process.kill()
            self.process.join()
            while self.pipe.poll():  # what it had sent is lost with it
                try:
                    self.pipe.recv()
                except EOFError:
                    break
        return super().answer()


def test_two_processes_give_what_one_gives_and_one_that_is_killed_is_made_up_for(corpus: Path):
    one, _ = run(job(corpus, "one.csv"), partial(in_processes, count=1))
    KilledOnce.killed.clear()
    two, all_read = run(job(corpus, "two.csv"), partial(in_processes, count=2, worker=KilledOnce))
    assert KilledOnce.killed
    assert all_read
    assert two.to_bytes() == one.to_bytes()


def test_processes_that_end_again_and_again_are_said(corpus: Path):
    started: list[Worker] = []

    class Ending(Worker):
        """A process that is killed before it can answer."""

        def give(self, task: tuple[int, Batch]) -> None:
            started.append(self)
            super().give(task)
            self.process.kill()
            self.process.join()

    with pytest.raises(InputError, match=r"3 processes ended .*corpus\.txt lines 1 to 16"):
        run(job(corpus), partial(in_processes, count=1, worker=Ending))
    assert len(started) == 3


class Interrupted:
    """Work whose process gets the signals of a terminal while it begins, as ctrl+c sends them to all."""

    def __setstate__(self, _: object) -> None:
        for name in ("SIGINT", "SIGQUIT", "SIGHUP"):
            os.kill(os.getpid(), getattr(signal, name))

    def __getstate__(self) -> dict[str, int]:
        return {"some": 1}

    def sums(self, batch: Batch) -> bytes:
        return f"{len(batch)} texts".encode()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no terminal sends signals here")
def test_the_signals_of_a_terminal_are_for_who_started_the_processes(capfd: pytest.CaptureFixture[str]):
    batch = (Item(0, Source("text", 1, "the fox")),)
    assert [each for each in in_processes(Interrupted(), [batch], 1) if each] == [b"1 texts"]
    assert capfd.readouterr().err == ""
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_what_a_process_cannot_do_is_said_as_it_is(corpus: Path):
    wrong = job(corpus, asked=Asked(("lens",)), model="attention")
    refuses("no vocabulary", lambda: run(wrong, partial(in_processes, count=1)))


# Texts of files and standard input: a line each, or objects of JSONL; streamed, numbered, and refused by name
def texts(*files: Path | str) -> list[tuple[int, int, str]]:
    return [(item.number, item.source.line, item.source.text) for item in read_items([str(file) for file in files])]


def test_a_line_or_an_object_of_jsonl_is_a_text_and_blank_lines_are_none(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes("one\r\n\n  \ntwo  words\nthree\\u2028 é".encode())
    (tmp_path / "b.txt").write_text("four", encoding="utf-8")
    lines = texts(tmp_path / "a.txt", tmp_path / "b.txt")
    assert lines == [(0, 1, "one"), (1, 4, "two  words"), (2, 5, "three\\u2028 é"), (3, 1, "four")]
    for name in ("a.jsonl", "a.ndjson"):
        text = '{"id": 1, "text": "one\\ntwo"}\n\n{"text": ""}\n{"text": "three"}'
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert texts(tmp_path / name) == [(0, 1, "one\ntwo"), (1, 4, "three")]
    # a line without a text is named
    wrongs = {
        '{"text": 1}': "no object with a text",
        "[1]": "not a JSON object",
        '{"text": "a"': "not JSON",
        "x": "not JSON",
    }
    for line, said in wrongs.items():
        (tmp_path / "a.jsonl").write_text(f'{{"text": "one"}}\n{line}\n', encoding="utf-8")
        refuses(f"a.jsonl line 2: {said}", lambda: texts(tmp_path / "a.jsonl"))


def test_a_long_object_is_read_whole_and_no_more_than_is_asked_for(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"text": "' + "long " * 200_000 + '"}', encoding="utf-8")
    assert [len(text) for *_, text in texts(tmp_path / "a.jsonl")] == [1_000_000]
    (tmp_path / "a.txt").write_text("a line of text\n" * 100_000, encoding="utf-8")
    read = []
    iterator = batches(read_items([str(tmp_path / "a.txt")], read.append), 16)
    assert len(next(iterator)) == 16
    assert sum(read) < 1_000_000


READ = {
    b"one\ntwo\n": ["one", "two"],
    b'{"text": "one"}\n{"text": "two"}\n': ["one", "two"],
    b'one\n{"text": "two"}\nthree\n': ["one", '{"text": "two"}', "three"],
    b'\n{"text": "two"}\n': ['{"text": "two"}'],
}


def test_standard_input_is_lines_or_jsonl(monkeypatch: pytest.MonkeyPatch):
    for data, expected in READ.items():
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert [text for *_, text in texts("-")] == expected


def test_files_are_checked_before_anything_is_read(tmp_path: Path):
    for files, said in (
        ([str(tmp_path)], "is a folder"),
        (["missing.txt"], "no such file"),
        (["-", "-"], "given twice"),
    ):
        refuses(said, lambda files=files: check_files(files))


def test_texts_of_any_iterator_give_rows_and_examples():
    model, lines = Model.load("story", device="cpu"), [f"The fox found {number} shells ." for number in range(20)]
    measured = measure_texts(model, iter(lines), ["previous", "first"], layers=[1], top=1)
    items = [Item(number, Source("", number + 1, text)) for number, text in enumerate(lines)]
    sums = survey(model, items, Asked(("previous", "first"), frozenset({1}), top=1))
    assert list(measured.rows) == list(rows(sums, Origin("story")))
    assert {example.text for example in measured.examples} <= set(lines)
    assert {row.layer for row in measured.rows} == {1}
    for given, said in (
        ({"measures": ["surprise"]}, "no measure is called"),
        ({"top": -1}, "top is -1: use 0 or more"),
        ({"length": 0}, "length is 0: use 1 or more"),
    ):
        refuses(said, lambda given=given: measure_texts(model, lines, **given))
