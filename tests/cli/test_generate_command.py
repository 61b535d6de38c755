"""`generate` writes text and nothing else to standard output, and what it did to standard error."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run
from safetensors.numpy import load_file, save_file

from tui_transformer.cli.generate import AsText
from tui_transformer.model import Model

COMMAND = (sys.executable, "-m", "tui_transformer", "generate")
ENDLESS = ("--model", "decoder", "--text", "the", "--max-length", "60000", "--max-new-tokens", "50000")
GPT2 = ("--model", str(REFERENCES / "gpt2"))


def lines(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_text_alone_is_written(run: Run) -> None:
    given = ("generate", *GPT2, "--text", "hello", "--max-new-tokens", "6")
    ended, whole = run(*given), run(*given, "--with-prompt")
    assert ended.code == 0
    assert ended.out.endswith("\n")
    assert whole.out == "hello" + ended.out
    assert ended.err.startswith("6 tokens · first after ")
    assert ended.err.endswith("6 new tokens, as asked\n")


def test_standard_output_ends_with_one_newline_that_the_text_may_bring_and_nothing_harmful(run: Run) -> None:
    model = Model.load(REFERENCES / "gpt2")
    for prompt in ("hello", "hello\n", "hello\n\n"):
        output = AsText(model, model.encode(prompt).ids, with_prompt=True)
        assert output.begin() + output.end() == (prompt if prompt.endswith("\n") else prompt + "\n")
    escape = next(i for i in range(model.config.vocab_size) if model.tokenizer.decode([i]) == "\x1b")
    ended = run("generate", *GPT2, "--ids", f"5,{escape}", "--with-prompt", "--max-new-tokens", "1")
    assert "\x1b" not in ended.out
    assert "␛" in ended.out


def test_json_has_an_object_for_every_token_with_its_draw(run: Run) -> None:
    ended = run("generate", *GPT2, "--ids", "5,6,7", "--max-new-tokens", "4", "--format", "json", "--with-prompt")
    tokens = lines(ended.out)
    assert [line["position"] for line in tokens] == list(range(7))
    assert [line["id"] for line in tokens] == [5, 6, 7, 244, 303, 271, 116]
    assert [line["prompt"] for line in tokens[:3]] == [True] * 3
    assert {(line["rank"], line["probability"]) for line in tokens[3:]} == {(1, 1.0)}
    assert all(0 < line["model_probability"] < 1 for line in tokens[3:])
    # the number that was drawn, and where it fell
    options = ("--temperature", "1", "--max-new-tokens", "8", "--format", "json")
    tokens = lines(run("generate", *GPT2, "--ids", "5,6", *options).out)
    for line in tokens:
        draw = line["draw"]
        assert draw["from"] <= draw["r"] < draw["to"]
        assert draw["to"] - draw["from"] == pytest.approx(line["probability"])
    greedy = lines(run("generate", *GPT2, "--ids", "5,6", "--greedy", "--max-new-tokens", "2", "--format", "json").out)
    assert [line["draw"] for line in greedy] == [None, None]


def test_a_draw_is_the_same_with_the_same_seed(run: Run) -> None:
    def ids(*options: str) -> list[object]:
        ended = run("generate", *GPT2, "--ids", "5,6", "--max-new-tokens", "12", "--format", "json", *options, code=0)
        return [line["id"] for line in lines(ended.out)]

    warm = ("--temperature", "1.5")
    drawn = ids(*warm, "--sample-seed", "3")
    assert drawn == ids(*warm, "--seed", "3") == ids(*warm, "--seed", "3", "--no-cache")
    assert drawn != ids(*warm, "--sample-seed", "4")
    assert ids() == ids("--greedy") == ids("--temperature", "0") == ids("--top-k", "1") != drawn


def test_an_encoder_decoder_writes_from_its_start_token(run: Run) -> None:
    model = ("--model", str(REFERENCES / "bart"))
    ended = run("generate", *model, "--ids", "5,6,7,8", "--max-new-tokens", "5", "--format", "json")
    assert [line["id"] for line in lines(ended.out)] == [220, 220, 220, 220, 2]
    assert lines(ended.out)[-1]["rules"] == ["forced_eos_token_id"]
    assert "stop token 2" in ended.err
    run("generate", *model, "--ids", "5,6,7,8", "--decoder-ids", "2,220", "--max-new-tokens", "3", code=0)


def test_a_text_ends_with_a_stop_and_where_the_model_is_full(run: Run) -> None:
    ended = run("generate", *GPT2, "--ids", "5,6,7", "--stop-ids", "271,9", "--format", "json")
    assert [line["id"] for line in lines(ended.out)] == [244, 303, 271]
    assert "stop token 271" in ended.err
    ended = run("generate", "--model", "decoder", "--max-length", "12", "--text", "the waves", "--format", "json")
    assert len(lines(ended.out)) == 10
    assert "the model reads no more than 12 tokens" in ended.err


def test_what_a_folder_asks_for_and_is_not_done_is_said(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "marian"
    shutil.copytree(REFERENCES / "marian", folder)
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": 6}))
    ended = run("generate", "--model", str(folder), "--text", "the sea", "--max-new-tokens", "2")
    assert ended.err.startswith("generation_config.json asks for num_beams 6, which is not done here")


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_keeps_what_is_there(environment: dict[str, str], number: signal.Signals, word: str) -> None:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *ENDLESS], env=environment, **streams) as process:
        assert process.stdout
        first = os.read(process.stdout.fileno(), 100)
        process.send_signal(number)
        rest, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert first
    assert (first + rest).endswith(b"\n")
    assert err.decode().endswith(f" · {word}\n")
    assert err.count(b"\n") == 1


def test_a_terminal_gets_the_text_as_well(run: Run, environment: dict[str, str]) -> None:
    leader, follower = pty.openpty()
    arguments = (*GPT2, "--text", "hello", "--max-new-tokens", "6")
    ended = subprocess.run([*COMMAND, *arguments], env=environment, stdout=follower, stderr=subprocess.PIPE, check=True)
    os.close(follower)
    seen = os.read(leader, 1000).decode().replace("\r\n", "\n")
    os.close(leader)
    assert seen == run("generate", *arguments).out
    assert ended.stderr


def test_an_edit_that_shows_later_tokens_writes_the_same_without_a_cache_and_says_why(run: Run) -> None:
    given = ("generate", "--model", "story", "--greedy", "--max-new-tokens", "8")
    edited = (*given, "--edit", "0.self_attention.weights[:, :, 1:] = 2")
    ended = run(*edited)
    assert ended.out == run(*edited, "--no-cache").out
    assert "no cache: decoder.0.self_attention.weights is edited so that tokens see later ones" in ended.err
    assert ended.out != run(*given).out


# Weights so large that the numbers overflow: nothing is printed that was not asked for


IDS = ("--ids", "3,4,5")


@pytest.mark.parametrize("family", ["gpt2", "vanilla-decoder"])
def test_what_overflows_is_null_in_json_and_no_text_is_written_of_it(run: Run, tmp_path: Path, family: str) -> None:
    shutil.copy(REFERENCES / family / "config.json", tmp_path)
    weights = load_file(REFERENCES / family / "model.safetensors")
    save_file({name: array * np.float32(1e30) for name, array in weights.items()}, tmp_path / "model.safetensors")
    for command in ("heads", "links", "lens", "rollout", "ablate"):
        ended = run(command, "--model", ".", *IDS, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        found = json.loads(ended.out, parse_constant=pytest.fail)
    assert {guess["probability"] for guess in found["answers"][0]["before"]} == {None}  # of the ablations
    for more in (("--greedy",), ("--temperature", "0.7"), ("--no-cache",)):
        ended = run("generate", "--model", ".", *IDS, *more)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.endswith("the logits of the next token overflow: try dtype float64\n")
