"""A survey as it goes on: stopped, taken up, refused, and equal to the last bit however it was done."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tui_transformer.analysis.survey.batch import Asked, Item
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.errors import InputError
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.processes import Worker, in_process, in_processes
from tui_transformer.survey.running import Digest, Job, run, state_path
from tui_transformer.survey.work import Batch, Work

ASKED = Asked(("first", "previous", "neurons"), top=2)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    lines = (f"The fox found {number} shells and {'a stone ' * (number % 5)}." for number in range(70))
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
    assert whole.counts.texts == 70
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
    with pytest.raises(InputError, match="third batch"):
        run(job(corpus), breaking)
    assert state_path(job(corpus).out).exists()
    assert run(job(corpus), in_process)[0].counts.texts == 40


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda corpus: job(corpus, asked=Asked(("first",))), "with another measure, top"),
        (lambda corpus: job(corpus, model="question"), "with another model"),
    ],
)
def test_the_state_of_another_survey_is_refused(corpus: Path, change, said: str):
    run(job(corpus), in_process, after(1))
    with pytest.raises(InputError, match=said):
        run(change(corpus), in_process)


def test_other_texts_are_refused(corpus: Path):
    run(job(corpus), in_process, after(2))
    corpus.write_text(corpus.read_text("utf-8").replace("found 20 shells", "found 21 shells"), encoding="utf-8")
    with pytest.raises(InputError, match="the texts are not those"):
        run(job(corpus), in_process)


def test_the_same_letters_in_other_texts_have_another_digest():
    def digest(*texts: str) -> str:
        made = Digest()
        made.add(Item(number, Source("a.txt", number, text)) for number, text in enumerate(texts))
        return made.value

    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "", "c"), digest("ab", "c", "")}) == 5
    assert digest("ab", "c") == digest("ab", "c")


def test_a_model_that_gives_other_numbers_is_refused(corpus: Path, tmp_path: Path):
    from tui_transformer.model import Model

    folder = tmp_path / "model"
    Model.load("decoder", device="cpu", seed=1, d_model=16, heads=2, d_ff=16).save(folder)
    run(job(corpus, model=str(folder)), in_process, after(2))
    Model.load("decoder", device="cpu", seed=2, d_model=16, heads=2, d_ff=16).save(folder)
    with pytest.raises(InputError, match="gives other numbers than before"):
        run(job(corpus, model=str(folder)), in_process)


def test_a_broken_state_is_refused(corpus: Path):
    state_path(job(corpus).out).write_bytes(b"PK no zip")
    with pytest.raises(InputError, match="is not the state of a survey: remove"):
        run(job(corpus), in_process)


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


def test_what_a_process_cannot_do_is_said_as_it_is(corpus: Path):
    wrong = job(corpus, asked=Asked(("lens",)), model="attention")
    with pytest.raises(InputError, match="no vocabulary"):
        run(wrong, partial(in_processes, count=1))
