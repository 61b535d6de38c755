"""Writing on: token by token, with edits, without padding, as text that streams."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from reference import REFERENCES, in_float64
from refusing import refuses

from tui_transformer import generate
from tui_transformer.engine.changes import OPEN, Add, Apply, Project, Scale, Set, standing
from tui_transformer.engine.edits import Ablate, Edit, Patch
from tui_transformer.engine.targets import Target
from tui_transformer.errors import InputError
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import State, Writer
from tui_transformer.model import Model

# A text is written on, with and without kept keys and values, forwards and back
GREEDY = Settings(greedy=True, max_new_tokens=9)
DRAWN = Settings(temperature=1.3, top_k=50, top_p=0.95, seed=7, max_new_tokens=9)
FAMILIES = ("vanilla-decoder", "gpt2", "llama", "bart", "marian", "t5")


PROMPT = (5, 6, 7)


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Model:
    return in_float64(request.param)


def writer(model: Model, settings: Settings = GREEDY) -> Writer:
    return Writer(model, settings, Rules(), source=(5, 6, 7, 8) if model.has_decoder else ())


def states(model: Model, settings: Settings) -> list[State]:
    source = writer(model, settings)
    return list(source.run(source.begin(() if model.has_decoder else PROMPT)))


@pytest.mark.parametrize("settings", [GREEDY, DRAWN], ids=["greedy", "drawn"])
def test_with_and_without_cache_the_same_is_written_and_as_a_trace_of_the_whole(model, settings) -> None:
    kept = states(model, settings)
    again = states(model, dataclasses.replace(settings, use_cache=False))
    assert [state.ids for state in kept] == [state.ids for state in again]
    for one, other in zip(kept, again, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, rtol=1e-10, atol=1e-12)
    assert {state.computed for state in kept[1:]} == {1}
    assert {state.kept for state in again} == {0}
    assert kept[-1].finished == "9 new tokens, as asked"
    *_, last = (state for state in kept if state.ids[-1] != model.config.pad_id)
    inputs = {"ids": [5, 6, 7, 8], "decoder_ids": last.ids} if model.has_decoder else {"ids": last.ids}
    np.testing.assert_allclose(last.logits, model.trace(**inputs)["output.logits"][-1], rtol=1e-9, atol=1e-11)


def test_every_state_has_the_trace_of_its_own_pass_and_going_back_gives_the_same_again(model: Model) -> None:
    source = writer(model, DRAWN)
    first = list(source.run(source.begin(PROMPT)))
    # the memory of the cache is known
    shapes = source.cache_shapes(len(first[-1].ids))
    assert {name: array.shape[1:] for name, array in source.cache.arrays.items()} == shapes
    assert source.cache.bytes == 8 * sum(map(np.prod, shapes.values()))
    assert source.limit_bytes > source.cache.bytes
    # traces
    for state in (first[-1], first[0], first[3]):
        trace = source.trace(state)
        assert trace["output.logits"].shape[0] == state.computed
        np.testing.assert_allclose(trace["output.logits"][-1], state.logits, rtol=1e-9, atol=1e-11)
    # going back
    second = list(source.run(first[2]))
    assert [state.ids for state in first[2:]] == [state.ids for state in second]
    for one, other in zip(first[2:], second, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, rtol=1e-10)
    other = source.next(first[2], token=9)
    assert other.ids == (*first[2].ids, 9)
    assert (other.kept, other.computed) == (len(first[2].ids), 1)
    long = source.next(first[-1], token=9)
    assert long.kept == len(first[2].ids)
    assert long.computed == len(long.ids) - long.kept


def test_the_length_of_the_model_ends_a_text_and_an_encoder_writes_none() -> None:
    model = Model.load(REFERENCES / "vanilla-decoder")
    source = Writer(model, Settings(greedy=True, max_new_tokens=100))
    *_, last = source.run(source.begin(PROMPT))
    assert len(last.ids) == 16
    assert last.finished == "the model reads no more than 16 tokens"
    refuses("no room", lambda: source.next(last))
    refuses("does not write", lambda: Writer(Model.load(REFERENCES / "bert")))


def test_a_prompt_longer_than_the_model_was_trained_for_may_grow_by_a_token() -> None:
    model = in_float64("mistral-window")
    prompt = tuple(range(5, 5 + model.config.max_length + 4))
    source = writer(model)
    source.begin(prompt[:-1])
    grown = source.begin(prompt)
    assert grown.computed == 1
    np.testing.assert_allclose(grown.logits, writer(model).begin(prompt).logits, rtol=1e-10, atol=1e-12)


def test_a_trace_stays_what_it_is_when_one_goes_back_and_writes_something_else(model: Model) -> None:
    source, other = writer(model), writer(model)
    every = list(source.run(source.begin(PROMPT)))
    trace = source.trace(every[-1])
    state = every[1]
    for token in (9, 10, 11, 12, 13, 14, 15, 16):
        state = source.next(state, token)
    last = list(other.run(other.begin(PROMPT)))[-1]
    np.testing.assert_array_equal(trace["output.logits"], other.trace(last)["output.logits"])


def test_rows_that_are_kept_are_copied_seldom_and_logits_are_kept() -> None:
    model = Model.load(REFERENCES / "gpt2")
    source = Writer(model, Settings(greedy=True, max_new_tokens=30), Rules())
    arrays = [source.cache.arrays for _ in source.run(source.begin(PROMPT))]
    memory = [id(each["decoder.0.self_attention.key_kept"].base) for each in arrays[1:]]
    assert len(set(memory)) == 1
    # another temperature computes nothing
    source = Writer(model, DRAWN)
    state = source.begin(PROMPT)
    source.settings = GREEDY
    again = source.again(state)
    assert again.logits is state.logits
    assert again.candidate == int(state.logits.argmax())
    assert again.probabilities[again.candidate] == 1.0


def test_likely_tokens_are_in_order_and_have_both_probabilities() -> None:
    source = Writer(Model.load(REFERENCES / "gpt2"), DRAWN, Rules(bad_words_ids=((244,),)))
    state = source.begin(PROMPT)
    likely = state.likely(360)
    assert [candidate.token for candidate in likely] == list(np.argsort(-state.scores, kind="stable"))
    assert state.rules == ("bad_words_ids",)
    assert likely[-1].token == 244
    assert likely[-1].probability == 0
    assert likely[-1].alone > 0
    assert sum(candidate.probability for candidate in likely) == pytest.approx(1)
    assert sum(candidate.alone for candidate in likely) == pytest.approx(1)
    assert state.of(likely[7].token) == likely[7]


class EndedError(Exception):
    """Raised by a watch to end a pass."""


def test_a_pass_can_be_ended_before_any_step_and_nothing_of_it_stays(model: Model) -> None:
    source, prompt = writer(model), () if model.has_decoder else PROMPT
    wanted = states(model, GREEDY)
    told: list[str] = []
    begun = source.begin(prompt, lambda step: told.append(step.name))
    assert told
    assert len(told) == len(set(told))
    after: list[str] = []
    source.next(begun, before=lambda step: after.append(step.name))
    assert after
    for last in (1, len(after) // 2, len(after)):
        source.begin(prompt)
        counted = iter(range(last - 1))

        def end(step: object, counted: object = counted) -> None:
            if next(counted, None) is None:
                raise EndedError

        with pytest.raises(EndedError):
            source.next(begun, before=end)
        assert source.next(begun).logits == pytest.approx(wanted[1].logits, rel=1e-12)
    fresh = writer(model)
    with pytest.raises(EndedError):
        fresh.begin(prompt, end)
    *again, last = fresh.run(fresh.begin(prompt))
    assert [state.candidate for state in (*again, last)] == [state.candidate for state in wanted]
    # its values can be watched too
    fresh.begin((9,))
    told.clear()
    fresh.trace(last, before=lambda step: told.append(step.name))
    assert told


# Edits during generation: the same with the cache, without it, and as a trace of the whole text has them
EDITED = (5, 1, 7)
VECTOR = np.random.default_rng(0).standard_normal(64) * 3
CHANGES = {
    "steered": [Add("0.output", VECTOR)],
    "from a position on": [Add("0.output", VECTOR, rows=range(4, 1000))],
    "a position": [Set("0.self_attention.output", 0.5, rows=range(5, 6))],
    "values of rows": [Add("embedding.output", np.stack([VECTOR, -VECTOR, VECTOR]), rows=range(2, 5))],
    "a head": [Scale("1.self_attention.context", 0.0, heads=range(1, 2))],
    "keys": [Set("0.self_attention.weights", 0.0, columns=range(1, 5))],
    "a function": [Apply("1.feed_forward.activation", function=lambda x: np.maximum(x, 0.1))],
    "logits": [Add("output.logits", np.linspace(0, 9, 8))],
    "a key": [Scale("0.self_attention.key", -1.0, rows=range(1, 6))],
    "weights": [Scale("0.feed_forward.output.weight", -2.0)],
}


@pytest.fixture(scope="module")
def steady() -> Model:
    sizes = {"layers": 2, "heads": 4, "d_model": 64, "d_ff": 32, "max_length": 24}
    return in_float64("decoder", seed=3, **sizes)


@pytest.mark.parametrize("name", CHANGES)
def test_with_the_cache_without_it_and_as_a_trace(steady, name):
    changes = CHANGES[name]
    texts = []
    for cached in (True, False):
        writer = Writer(steady, Settings(greedy=True, max_new_tokens=6, use_cache=cached), Rules(), edits=changes)
        texts.append(list(writer.run(writer.begin(EDITED))))
    for with_cache, without in zip(*texts, strict=True):
        assert with_cache.ids == without.ids
        np.testing.assert_allclose(with_cache.logits, without.logits, atol=1e-10)
    last = texts[0][-1]
    length = len(last.ids)
    clipped = [
        change.placed(steady.program(length), {})
        if change.rows is None or change.rows.stop <= length
        else Add(change.name, change.values, rows=range(change.rows.start, length))
        for change in changes
    ]
    whole = steady.trace(ids=last.ids).edited(clipped)
    np.testing.assert_allclose(last.logits, whole["output.logits"][-1], atol=1e-10)
    plain = Writer(steady, Settings(greedy=True, max_new_tokens=6), Rules())
    other = list(plain.run(plain.begin(EDITED)))[-1]
    assert not np.allclose(other.logits, last.logits, atol=1e-3)


AHEAD = {
    "all": ([Set("0.self_attention.weights", 2.0)], OPEN),
    "added": ([Add("0.self_attention.weights", 0.5)], OPEN),
    "unmasked": ([Set("0.self_attention.masked", 0.0, heads=range(1, 2))], OPEN),
    "keys": ([Set("0.self_attention.weights", 0.5, columns=range(1, OPEN))], OPEN),
    "a later row": ([Set("0.self_attention.weights", 0.5, rows=range(3, 4))], OPEN),
    "a function": ([Apply("0.self_attention.weights", function=lambda x: x + 0.1)], OPEN),
    "a direction": ([Project("0.self_attention.weights", [1.0, 2.0, 0.5], columns=range(3))], 3),
    "a cell": ([Set("0.self_attention.weights", 0.5, rows=range(2, 3), columns=range(4, 5))], 5),
}
"""Edits that let tokens see later ones, and how many tokens have to be there until nothing new is seen."""
NOT_AHEAD = [
    Set("0.self_attention.weights", 0.0, columns=range(2, OPEN)),
    Set("0.self_attention.weights", 0.5, columns=range(1)),
    Set("0.self_attention.weights", 0.5, rows=range(2, OPEN), columns=range(2)),
    Set("0.self_attention.masked", -np.inf, heads=range(1)),
    Set("0.self_attention.scores", 0.5),
    Scale("0.self_attention.weights", 2.0),
    Add("0.self_attention.masked", 2.0),
    Set("1.self_attention.weights", 0.5),  # of the last attention nothing else is kept
]


@pytest.mark.parametrize("name", AHEAD)
def test_what_lets_tokens_see_later_ones_is_written_as_without_the_cache(steady, name):
    edits, enough = AHEAD[name]
    writers = [
        Writer(steady, Settings(max_new_tokens=6, use_cache=each), Rules(), edits=edits) for each in (True, False)
    ]
    pairs = list(zip(*(writer.run(writer.begin(EDITED)) for writer in writers), strict=True))
    pairs.append(tuple(writer.next(pairs[0][0], 5) for writer in writers))  # back to the prompt
    for cached, bare in pairs:
        np.testing.assert_allclose(cached.logits, bare.logits, atol=1e-10)
        assert cached.kept in (0, len(cached.ids) - 1)
        assert (cached.kept == 0) == (len(cached.ids) <= enough or len(cached.ids) == len(EDITED))
    assert "decoder.0.self_attention" in writers[0].why_unkept(2)
    assert not writers[0].why_unkept(enough)


@pytest.mark.parametrize("edit", NOT_AHEAD)
def test_what_shows_nothing_later_keeps_the_cache(steady, edit):
    writer, bare = (Writer(steady, Settings(use_cache=each), Rules(), edits=[edit]) for each in (True, False))
    states = [(each := bare.begin(EDITED)), *(each := bare.next(each) for _ in range(3))]
    kept = writer.begin(EDITED)
    for state in states[1:]:
        kept = writer.next(kept)
        np.testing.assert_allclose(kept.logits, state.logits, atol=1e-10)
        assert kept.kept == len(kept.ids) - 1
    assert not writer.why_unkept(0)


def test_the_trace_of_a_token_has_the_edits(steady):
    edits = [Set("0.output", 0.25, rows=range(4, 5))]
    writer = Writer(steady, Settings(greedy=True, max_new_tokens=3), Rules(), edits=edits)
    *_, state = (writer.begin(EDITED), *list(writer.run(writer.begin(EDITED)))[:3])
    assert len(state.ids) == 5
    assert (writer.trace(state)["decoder.0.output"] == 0.25).all()


def test_edits_of_a_sentence_stand_where_they_were_made(steady):
    trace = steady.trace(ids=EDITED)
    name = "decoder.0.feed_forward.residual"
    edits = [
        Ablate("decoder.1.self_attention.context", (range(1), range(3), range(16))),
        Edit(name, (1, 2), 4.0),
        Patch.of(name, np.ones((3, 64)), (range(2, 3), range(64))),
    ]
    changes = [standing(trace.program, edit) for edit in edits]
    writer = Writer(steady, Settings(greedy=True, max_new_tokens=4), Rules(), edits=changes)
    assert np.allclose(writer.begin(EDITED).logits, trace.edited(edits)["output.logits"][-1], atol=1e-10)
    *_, last = writer.run(writer.begin(EDITED))
    everywhere = [Ablate("decoder.1.self_attention.context", (range(1), range(len(last.ids)), range(16))), *edits[1:2]]
    patched = [*everywhere, Set(name, 1.0, rows=range(2, 3))]
    assert np.allclose(last.logits, steady.trace(ids=last.ids).edited(patched)["output.logits"][-1], atol=1e-10)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("name", ["0.self_attention.weights", "1.self_attention.masked"])
def test_weights_from_another_sentence_stay_those_of_its_keys(steady, cached, name):
    trace, other = steady.trace(ids=EDITED), steady.trace(ids=(7, 4, 5))
    patch = Patch.between(trace, other, name)
    change = standing(trace.program, patch)
    writer = Writer(steady, Settings(greedy=True, max_new_tokens=3, use_cache=cached), Rules(), edits=[change])
    *_, last = writer.run(writer.begin(EDITED))
    place = {"rows": range(3), "columns": range(3)}
    alike = steady.trace(ids=last.ids).edited([Set(name, other[patch.name], **place)])
    np.testing.assert_allclose(last.logits, alike["output.logits"][-1], atol=1e-10)
    shorter = Writer(steady, edits=[change]).begin(EDITED[:2])  # of a shorter text, those of the keys that it has
    cut = steady.trace(ids=EDITED[:2]).edited([Set(name, other[patch.name][:, :2, :2])])
    np.testing.assert_allclose(shorter.logits, cut["output.logits"][-1], atol=1e-10)


def test_a_head_that_is_ablated_in_a_prompt_writes_nothing_behind_it_either(steady):
    head = Target("head", "decoder.0.self_attention", 1).edits(steady.program(len(EDITED)))
    asked = {"greedy": True, "max_new_tokens": 12}
    silent = generate(steady, EDITED, edits=[Scale("0.self_attention.context", 0.0, heads=1)], **asked)
    assert generate(steady, EDITED, edits=head, **asked) == silent != generate(steady, EDITED, **asked)


@pytest.mark.parametrize("cached", [True, False])
def test_an_edit_of_the_encoder_is_none_of_the_decoder(cached):
    model = in_float64("vanilla-encoder-decoder")
    edits, source, ids = [Scale("embedding.output", 2.0)], [4, 5, 6], [1, 4, 7, 8, 5]
    whole = model.trace(ids=source, decoder_ids=ids).edited(edits)
    writer = Writer(model, Settings(greedy=True, use_cache=cached), Rules(), source, edits=edits)
    state = writer.begin(ids[:2])
    for token in ids[2:]:
        state = writer.next(state, token)
    np.testing.assert_allclose(state.logits, whole["output.logits"][-1], atol=1e-10)


def test_what_is_of_one_sentence_alone_or_changes_no_text_is_refused(steady):
    mean = Ablate("decoder.0.self_attention.context", (range(1), range(3), range(16)), mean=True)
    refuses("a mean over the positions is of one sentence", lambda: Writer(steady, edits=[mean]))
    with pytest.raises(InputError, match=r"output.probabilities: tokens are chosen from output.logits: change that"):
        Writer(steady, edits=[Set("probabilities", 1.0, columns=5)])
    refuses("no step is called 'nothing'", lambda: Writer(steady, edits=[Add("nothing", 1.0)]))
    refuses("do not say where they go", lambda: Writer(steady, edits=[Add("0.output", np.ones((3, 64)))]).begin(EDITED))
