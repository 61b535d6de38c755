"""Courses of teachers, translations, progress, and what a learner begins with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from refusing import refuses

from tui_transformer.course import check, open_course
from tui_transformer.course.exercise import Progress, read_progress, write_progress
from tui_transformer.course.sources import Facts, start, start_files
from tui_transformer.errors import UsageError

OWN = open_course()


def of_a_teacher(folder: Path) -> Path:
    """A folder with one exercise."""
    shutil.copytree(OWN.find("cross-entropy").folder, folder / "1-wrong-by-how-much")
    return folder


def test_a_teachers_folder_is_a_course_and_one_without_exercises_is_refused(tmp_path: Path) -> None:
    (exercise,) = open_course(of_a_teacher(tmp_path)).exercises
    assert exercise.name == "wrong-by-how-much"
    assert check(exercise, exercise.solution).passed
    (tmp_path / "empty").mkdir()
    refuses(r"no folder in it has an about\.toml", lambda: open_course(tmp_path / "empty"))
    refuses("name a folder of exercises", lambda: open_course(tmp_path / "none"))


def test_exercises_are_found_by_name_and_number_and_the_next_is_the_one_that_is_not_done() -> None:
    assert OWN.find("5") is OWN.find("scores")
    refuses("did you mean scores", lambda: OWN.find("score"), UsageError)
    names = [each.name for each in OWN.exercises]
    assert OWN.left(set()) is OWN.exercises[0]
    assert OWN.left({names[3]}, names[2]) is OWN.exercises[4]
    assert OWN.left(set(names[1:]), names[-1]) is OWN.exercises[0]
    assert OWN.left(set(names)) is None


def test_texts_are_translated_and_what_is_left_out_is_english(tmp_path: Path) -> None:
    folder = of_a_teacher(tmp_path) / "1-wrong-by-how-much"
    words = 'title = "Kreuzentropie"\nmodel = "nowhere"\n[mistakes]\nsummed = "Teile durch die Anzahl."\n'
    (folder / "de.toml").write_text(words, encoding="utf-8")
    english, german = (open_course(tmp_path, language).exercises[0] for language in ("en", "de"))
    assert (english.title, german.title) == ("Cross-entropy", "Kreuzentropie")
    assert german.task == english.task
    assert german.model == english.model
    assert german.mistakes["in_bits"] == english.mistakes["in_bits"]
    verdict = check(german, german.wrong, function="summed")
    assert verdict.cause == "loss-sum"
    assert verdict.says.endswith(" Teile durch die Anzahl.")


BROKEN = {
    'title = "Cross-entropy"': "title is missing",
    "[answers]\nloss = { loss = true }": "[answers] is missing",
    'logits = "output.logits"': "output.logit is no step",
    'predicts = "next"': 'predicts = "next"',
}


@pytest.mark.parametrize("line", BROKEN)
def test_a_damaged_exercise_is_refused_in_one_line(tmp_path: Path, line: str) -> None:
    folder = of_a_teacher(tmp_path) / "1-wrong-by-how-much"
    about = folder / "about.toml"
    text = about.read_text(encoding="utf-8")
    assert line in text
    about.write_text(text.replace(line, 'logits = "output.logit"' if "logits" in line else ""), encoding="utf-8")
    assert BROKEN[line] in refuses("", lambda: check(open_course(tmp_path).exercises[0], folder / "solution.py"))


def test_inputs_are_written_as_text_and_no_file_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "scores.py"
    file.write_text("mine\n", encoding="utf-8")
    refuses("not written over", lambda: start(OWN.find("scores"), file))
    assert file.read_text(encoding="utf-8") == "mine\n"
    refuses("not written over", lambda: start_files(OWN.find("scores"), tmp_path))
    start_files(OWN.find("query-key-value"), tmp_path / "qkv")
    assert (tmp_path / "qkv" / "x.txt").read_text(encoding="utf-8").splitlines()[0] == "9 32"
    assert (tmp_path / "qkv" / "heads.txt").read_text(encoding="utf-8") == "4\n"
    assert (tmp_path / "qkv" / "weights" / "query.bias.txt").read_text(encoding="utf-8").splitlines()[0] == "32"
    assert "Reshape" not in (tmp_path / "qkv" / "task.txt").read_text(encoding="utf-8")


def test_progress_is_kept_for_each_course_and_what_is_damaged_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "below" / "course.json"
    assert read_progress(path, "") == Progress()
    write_progress(path, "", Progress().with_done("scores").with_hints("mask", 2))
    write_progress(path, "/of/a/teacher", Progress().with_done("other"))
    assert read_progress(path, "") == Progress(frozenset({"scores"}), {"mask": 2})
    assert read_progress(path, "/of/a/teacher").done == {"other"}
    for text in ("", "[]", '{"": 3}', '{"": {"done": 3}}', "\x00"):
        path.write_text(text, encoding="utf-8")
        refuses(r"course\.json", lambda: read_progress(path, ""))
        assert path.read_text(encoding="utf-8") == text


def test_a_course_has_an_end_of_its_own_or_none_and_says_what_was_learned(tmp_path: Path) -> None:
    assert all(len(each.learned) > 100 for each in OWN.exercises)
    assert len({each.learned for each in OWN.exercises}) == len(OWN.exercises) >= 15
    assert "transformer" in OWN.end
    folder = of_a_teacher(tmp_path) / "1-wrong-by-how-much"
    assert open_course(tmp_path).end == ""
    (tmp_path / "course.toml").write_text('end = """\nWell\ndone.\n\nGo on."""', encoding="utf-8")
    (tmp_path / "course.de.toml").write_text('end = "Fertig."', encoding="utf-8")
    (folder / "de.toml").write_text('learned = "Gelernt."', encoding="utf-8")
    english, german = (open_course(tmp_path, language) for language in ("en", "de"))
    assert (english.end, german.end) == ("Well done.\nGo on.", "Fertig.")
    assert german.exercises[0].learned == "Gelernt."
    (tmp_path / "course.toml").write_text("end = 3", encoding="utf-8")
    refuses(r"course\.toml: end is a text in quotes", lambda: open_course(tmp_path))


def test_rows_are_raised_as_the_exercise_says() -> None:
    facts = Facts(OWN.find("softmax"))
    plain = facts.given("decoder.0.self_attention.masked", facts.reference.exact)
    raised = facts.given({"raised": "decoder.0.self_attention.masked", "by": 7}, facts.reference.exact)
    assert raised.axes == plain.axes
    assert (raised.value[:, ::2] == plain.value[:, ::2]).all()
    assert (raised.value[:, 1::2] == plain.value[:, 1::2] + 7).all()
    assert facts.step(OWN.find("softmax").inputs["masked"]) == "decoder.0.self_attention.masked"
    refuses("by the number", lambda: facts.given({"raised": "decoder.0.self_attention.masked"}, facts.reference.exact))
