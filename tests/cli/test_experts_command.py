"""`experts`: the load of every expert, and who went where."""

from __future__ import annotations

import json
from collections import Counter

from command_line import REFERENCES, Run

MIXTRAL = ("--model", str(REFERENCES / "mixtral"), "--device", "cpu", "--ids", "5,7,9,33,12,8", "--format", "json")


def test_loads_and_choices_say_the_same(run: Run) -> None:
    loads = json.loads(run("experts", *MIXTRAL).out)
    who = json.loads(run("experts", "--who", *MIXTRAL).out)
    counted = Counter((each["layer"], str(each["expert"])) for each in who)
    assert {(each["layer"], each["expert"]): each["tokens"] for each in loads if each["tokens"]} == counted
    assert {each["layer"] for each in loads} == {"0", "1"}
    assert [each["rank"] for each in who[:2]] == [1, 2]
    assert who[0]["share"] >= who[1]["share"]


def test_one_layer_and_the_text(run: Run) -> None:
    assert {each["layer"] for each in json.loads(run("experts", *MIXTRAL, "--layer", "1").out)} == {"1"}
    text = run("experts", *MIXTRAL[:-1], "text")
    assert text.out.splitlines()[0].split() == ["layer", "expert", "tokens", "even", "mean", "share"]


def test_a_model_without_experts_and_a_layer_that_is_not_there_are_refused(run: Run) -> None:
    other = run("experts", "--model", str(REFERENCES / "llama"), "--ids", "5,6")
    assert other.code == 1
    assert "has no experts" in other.err
    far = run("experts", *MIXTRAL, "--layer", "9")
    assert (far.code, "layer 9 has no experts: 0, 1 have" in far.err) == (1, True)
