"""Several texts written on together are what each is alone."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.together import write_together
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

DECODERS = (
    "vanilla-decoder",
    "gpt2",
    "llama",
    "mistral-window",
    "gemma3",
    "falcon",
    "bloom",
    "opt",
    "mixtral",
    "gpt_neo",
)
PROMPTS = [[7, 9, 12, 5, 8, 11], [10], [4, 13, 6]]
SETTINGS = Settings(max_new_tokens=5)


def load(name: str) -> Model:
    return Model.load(REFERENCES / name, device="cpu", dtype="float64")


def alone(model: Model, prompt: list[int], settings: Settings, rules: Rules, source: list[int] | tuple = ()) -> tuple:
    writer = Writer(model, settings, rules, source)
    *_, last = writer.run(writer.begin(prompt))
    return last.written


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("cached", [True, False])
def test_prompts_of_different_lengths_are_written_on_as_each_alone(name, cached):
    model, settings = load(name), Settings(max_new_tokens=5, use_cache=cached)
    wanted = tuple(alone(model, prompt, settings, Rules()) for prompt in PROMPTS)
    assert write_together(model, PROMPTS, settings=settings, rules=Rules()) == wanted


def test_rows_with_a_mask_are_read_as_what_they_are():
    model = load("llama")
    rows, mask = [[3, 3, 7, 9], [4, 33, 21, 8]], [[0, 0, 1, 1], [1, 1, 1, 1]]
    wanted = tuple(alone(model, prompt, SETTINGS, Rules()) for prompt in ([7, 9], [4, 33, 21, 8]))
    assert write_together(model, rows, mask=mask, settings=SETTINGS, rules=Rules()) == wanted


def test_a_text_that_has_ended_does_not_hold_the_others_up():
    model = load("llama")
    free = [alone(model, prompt, SETTINGS, Rules()) for prompt in PROMPTS]
    rules = Rules(stop_ids=(free[0][1],))
    wanted = tuple(alone(model, prompt, SETTINGS, rules) for prompt in PROMPTS)
    assert write_together(model, PROMPTS, settings=SETTINGS, rules=rules) == wanted
    assert len(wanted[0]) <= 2


def test_draws_are_those_of_the_text_alone():
    model, settings = load("gpt2"), Settings(max_new_tokens=5, temperature=1.5, seed=3, greedy=False)
    wanted = tuple(alone(model, prompt, settings, Rules()) for prompt in PROMPTS)
    assert write_together(model, PROMPTS, settings=settings, rules=Rules()) == wanted


@pytest.mark.parametrize("name", ["bart", "t5", "marian", "m2m_100"])
def test_sources_of_different_lengths_are_read_under_a_mask(name):
    model, sources = load(name), [[7, 9, 12, 5, 2], [10, 2], [4, 33, 2]]
    starts = [[model.config.start_id or 0]] * 3
    wanted = tuple(
        alone(model, start, SETTINGS, Rules(), source) for start, source in zip(starts, sources, strict=True)
    )
    assert write_together(model, starts, sources=sources, settings=SETTINGS, rules=Rules()) == wanted


@pytest.mark.parametrize(
    ("prompts", "more", "message"),
    [
        ([], {}, "nothing to write on from"),
        ([[5], []], {}, "nothing to write on from"),
        ([[5]], {"sources": [[6]]}, "give a source for every prompt"),
        ([[5, 6], [7]], {"mask": [[1, 1], [1, 1]]}, "rows of one length"),
        ([[5, 6]], {"mask": [[1, 0]]}, "put padding in front"),
        ([[5, 600]], {}, "outside the vocabulary"),
    ],
)
def test_what_does_not_fit_is_refused(prompts, more, message):
    with pytest.raises(InputError, match=message):
        write_together(load("llama"), prompts, settings=SETTINGS, rules=Rules(), **more)


def test_a_model_that_does_not_write_is_refused():
    with pytest.raises(InputError, match="does not write"):
        write_together(load("bert"), [[5]])


@pytest.mark.parametrize("left", [True, False])
def test_rows_after_kept_ones_are_those_of_the_whole_under_the_same_mask(left):
    model = load("llama")
    ids = [[3, 3, 7, 9, 12, 5], [4, 33, 21, 8, 6, 10]]
    mask = np.array([[0, 0, 1, 1, 1, 1] if left else [1, 1, 0, 1, 1, 1], [1] * 6])
    whole = model.trace(ids=ids, mask=mask)
    from tui_transformer.generation.passes import last_logits

    _, kept = last_logits(model.trace_after({}, 0, [row[:4] for row in ids], mask=mask[:, :4], budget=0))
    after = model.trace_after(kept, 4, ids, mask=mask)
    np.testing.assert_allclose(after["output.logits"], whole["output.logits"][:, 4:], atol=1e-12)
