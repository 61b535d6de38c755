from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tui_transformer.explorer.recorded import Animation, Shot

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "screenshots" / "take.py"
PNG = b"\x89PNG\r\n\x1a\n"
NAMESPACE = "http://www.w3.org/2000/svg"
PARTS = 4
"""All scenes take long: tests that can run beside each other take a part each."""


def take(out: Path, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--out", str(out), *names]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def check(out: Path, name: str, text: str) -> None:
    svg = (out / f"{name}.svg").read_text(encoding="utf-8")
    assert text in svg
    assert "//" not in svg.replace(NAMESPACE, "")
    assert (out / f"{name}.png").read_bytes().startswith(PNG)


def test_scenes_are_taken_without_foreign_addresses_and_without_a_browser_its_picture_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "browser.png").write_bytes(b"as it was")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = take(tmp_path, "narrow", "poster", "browser")
    assert done.returncode == 0, done.stderr
    check(tmp_path, "narrow", "self_attention.weights")
    check(tmp_path, "poster", "query where · key ?")
    assert "there is no Chromium" in done.stderr
    assert (tmp_path / "browser.png").read_bytes() == b"as it was"


def test_an_unknown_scene_is_refused_with_the_names_of_all(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from take import main

    with pytest.raises(SystemExit, match="2"):
        main(["--out", str(tmp_path), "nothing"])
    said = capsys.readouterr().err
    assert "'nothing'" in said
    assert "attention-example" in said


DRAWN = 3
"""Screens of what moves that a test draws: each takes a fifth of a second, and shows no more than a picture does."""


@pytest.mark.slow
def test_what_moves_in_the_readme_is_played_to_its_end_and_written(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from take import MOVING, take_moving

    shots, draw = list[Shot](), Animation.add

    def add(self: Animation, shot: Shot) -> None:
        shots.append(shot)
        if len(shots) <= DRAWN:
            draw(self, shot)

    monkeypatch.setattr(Animation, "add", add)
    for name, keys in MOVING.items():
        shots.clear()
        take_moving(tmp_path / f"{name}.gif", keys)
        assert len({"".join(strip.text for strip in shot.strips) for shot in shots}) > 30
        with image.open(tmp_path / f"{name}.gif") as picture:
            assert picture.n_frames == DRAWN


TAKE_PART = """
import sys, take
part = slice(int(sys.argv[2]), None, int(sys.argv[3]))
take.main(["--out", sys.argv[1], *[*take.SCENES][part]])
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_scene_can_be_taken(tmp_path: Path, part: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(SCRIPT.parent)])}
    command = [sys.executable, "-c", TAKE_PART, str(tmp_path), str(part), str(PARTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    names = [Path(line).stem for line in done.stdout.splitlines()]
    assert len(names) >= 12 // PARTS
    for name in names:
        check(tmp_path, name, "</svg>")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium")
def test_the_page_of_serve_is_taken_by_a_browser(tmp_path: Path) -> None:
    done = take(tmp_path, "browser")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "browser.png").read_bytes().startswith(PNG)
