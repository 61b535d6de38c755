"""Lenses: what the stream and the heads spell, plain and tuned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import REFERENCES, in_float64, trace_of
from refusing import refuses

from tui_transformer import fit_lens, logit_lens
from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.head_lens import head_lens
from tui_transformer.analysis.logit_lens import lens_of, words_at
from tui_transformer.engine.changes import Scale, Set
from tui_transformer.engine.edits import Ablate, Change, Edit
from tui_transformer.errors import InputError
from tui_transformer.learning.corpora import lines_of
from tui_transformer.model import Model

# The logit lens: the model's own last steps on every layer
FOLDERS = sorted(REFERENCES.iterdir())
TEXTS = 60


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_after_the_last_layer_it_is_the_model_itself(folder: object) -> None:
    trace = trace_of(folder)
    lens = lens_of(trace.program)
    spelled = lens.spell(trace, lens.depths[-1], range(lens.tokens), top=5)
    expected = trace["output.probabilities"]
    np.testing.assert_allclose(spelled.probabilities, np.sort(expected, axis=1)[:, ::-1][:, :5], rtol=1e-9)
    for row in range(lens.tokens):
        for word, probability in words_at(spelled, row):
            assert expected[row, word] == pytest.approx(probability)


def test_an_earlier_layer_goes_through_the_final_norm_and_the_head_edited_as_they_are() -> None:
    trace = trace_of("gpt2")
    lens = lens_of(trace.program)
    x = trace["decoder.0.output"]
    scale, shift = trace["decoder.norm.weight"], trace["decoder.norm.bias"]
    normed = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * scale + shift
    expected = normed @ trace["embedding.tokens.weight"].T
    np.testing.assert_allclose(lens.logits(trace, lens.depths[1], range(5)), expected, atol=1e-9)
    trace = trace_of("gpt2").edited([Edit("decoder.norm.weight", (3,), 50.0)])
    spelled = lens.spell(trace, lens.depths[-1], range(5))
    assert spelled.probabilities[:, 0] == pytest.approx(trace["output.probabilities"].max(axis=1))


MEAN = Ablate("decoder.norm", (range(5), range(32)), mean=True)


@pytest.mark.parametrize("edit", [Scale("output.logits", 0.3), Set("decoder.norm", 2.0, rows=1), MEAN])
def test_edits_of_the_norm_and_of_the_logits_hold_for_every_depth(edit: Change) -> None:
    trace = trace_of("gpt2").edited([edit])
    lens, whole = lens_of(trace.program), trace["output.logits"]
    parts = [lens.logits(trace, lens.depths[-1], range(row, row + 1)) for row in range(5)]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-9)
    plain = trace_of("gpt2")
    assert not np.allclose(lens.logits(trace, lens.depths[0], range(5)), lens.logits(plain, lens.depths[0], range(5)))


def test_of_equal_words_the_first_are_spelled_and_none_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of("gpt2")
    lens = lens_of(trace.program)
    logits = np.full((1, lens.vocabulary), -1.0)
    logits[0, [2, 5, 9, 11]] = 3.0
    logits[0, 3] = np.nan
    monkeypatch.setattr(type(lens), "logits", lambda *_: logits)
    assert lens.spell(trace, lens.depths[0], range(1), 6).words.tolist() == [[2, 5, 9, 11, 0, 1]]


def test_windows_and_blocks_give_the_same_from_what_enters_the_first_layer_on() -> None:
    trace = trace_of("llama", budget=0)
    lens = lens_of(trace.program)
    whole = [lens.spell(trace, depth, range(5), 3) for depth in lens.depths]
    trace = replace(trace, block=2 * lens.vocabulary)
    for depth, expected in zip(lens.depths, whole, strict=True):
        part = lens.spell(trace, depth, range(1, 5), 3)
        np.testing.assert_allclose(part.probabilities, expected.probabilities[1:])
        assert (part.words == expected.words[1:]).all()
    lens = lens_of(trace_of("vanilla-decoder").program)
    assert [depth.title for depth in lens.depths] == ["embedding", "layer 0", "layer 1"]
    assert lens.depths[0].step == "embedding.output"
    lens = lens_of(trace_of("t5").program)
    assert lens.depths[0].step == "decoder.embedding.tokens"
    assert lens.tokens == 3


# The tuned lens: fitted on texts, beside least squares by another way, and nearer to the answer than the plain one
@pytest.fixture(scope="module")
def story() -> Model:
    return in_float64("story")


@pytest.fixture(scope="module")
def tuned(story: Model):
    return fit_lens(story.trace(text) for text in lines(TEXTS))


def lines(count: int, first: int = 0) -> list[str]:
    return list(lines_of("story", first + count))[first:]


def test_the_map_is_that_of_ridge_regression(story, tuned):
    traces = [story.trace(text) for text in lines(TEXTS)]
    x, y = (np.concatenate([trace[f"{layer}.output"] for trace in traces]) for layer in (0, 2))
    affine, count = tuned[0], len(x)
    spread = x - x.mean(axis=0)
    ridge = np.sqrt(np.square(spread).sum() / count) * np.eye(x.shape[1])  # √(N λ) with λ = tr S ÷ N
    moved = (y - x) - (y - x).mean(axis=0)
    expected = np.linalg.lstsq(np.vstack([spread, ridge]), np.vstack([moved, np.zeros_like(ridge)]), rcond=None)[0]
    assert affine.tokens == count
    np.testing.assert_allclose(affine.matrix, expected, atol=1e-9)
    np.testing.assert_allclose(affine.shift, (y - x).mean(axis=0), atol=1e-12)
    assert sorted(tuned) == [-1, 0, 1]


def test_on_other_texts_it_is_nearer_to_the_answer_than_the_plain_lens(story, tuned):
    trace = story.trace(lines(1, TEXTS)[0])
    plain, fitted = lens_of(trace.program), lens_of(trace.program, tuned)
    rows = range(plain.tokens)
    for depth in plain.depths[:-1]:
        assert fitted.divergences(trace, depth, rows).mean() < 0.8 * plain.divergences(trace, depth, rows).mean()
    assert fitted.divergences(trace, plain.depths[-1], rows).max() < 1e-9
    spelled = list(logit_lens(trace, 2, tuned=tuned))[1]
    x, affine = trace["0.output"], tuned[0]
    state = x + (x - affine.mean) @ affine.matrix + affine.shift
    norm = (state - state.mean(axis=1, keepdims=True)) / np.sqrt(state.var(axis=1, keepdims=True) + 1e-5)
    logits = (norm * trace["decoder.norm.weight"] + trace["decoder.norm.bias"]) @ trace["embedding.tokens.weight"].T
    assert [word for word, _ in words_at(spelled, -1)] == np.argsort(-logits[-1])[:2].tolist()


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2"])
def test_what_the_heads_raise_goes_through_the_map_of_their_layer(name):
    model = in_float64(name)
    trace = model.trace(ids=[5, 6, 7, 8])
    maps = fit_lens([trace, model.trace(ids=[[9, 3, 4, 2], [1, 5, 6, 6]])])
    (plain, *_), (fitted, *_) = (list(head_lens(trace, 2, layer=0, tuned=each)) for each in (None, maps))
    assert not np.allclose(plain.logits, fitted.logits)
    nothing = {0: type(maps[0])(maps[0].mean, np.zeros_like(maps[0].matrix), maps[0].shift, 1)}
    (same, *_) = head_lens(trace, 2, layer=0, tuned=nothing)
    np.testing.assert_allclose(same.logits, plain.logits, atol=1e-10)
    last = max(each.attention.layer for each in head_lens(trace, 2))
    ends = [[each.logits for each in head_lens(trace, 2, layer=last, tuned=given)] for given in (None, maps)]
    np.testing.assert_array_equal(*ends)


def test_what_cannot_be_fitted_is_refused(story):
    trace = story.trace("The fox found a")
    refuses("no sentence to fit", lambda: fit_lens([]))
    refuses(r"fit_lens\(\[trace, …\]\)", lambda: fit_lens(trace))
    refuses("no layer 7: layers are 0 to 2", lambda: fit_lens([trace], layers=[7]))
    refuses("top is 0: use 1 or more", lambda: logit_lens(trace, 0))
    refuses("there is no position 99: use 0 to", lambda: words_at(logit_lens(trace)[0], 99))
    refuses("different widths", lambda: fit_lens([trace, Model.load("copy").trace(ids=[5, 6])]))
    with pytest.raises(InputError, match="fitted for vectors of 80 columns"):
        list(logit_lens(Model.load(REFERENCES / "gpt2").trace(ids=[5, 6]), tuned=fit_lens([trace])))
    alone = fit_lens([story.trace(ids=[5])], layers=[1])
    assert list(alone) == [1]
    assert not alone[1].matrix.any()
    assert fit_lens([trace], layers=[2]) == {}  # the last has no map


# The logit lens by head, beside the terms of a logit and sums by hand


def test_the_difference_of_two_words_is_the_term_of_the_head_after_every_norm_too():
    for name in ("gpt2", "llama", "gemma2", "gpt_neox", "opt"):
        trace = in_float64(name).trace(ids=[5, 6, 7, 8])
        terms = {(term.name, term.number): term.value for term in attribute(trace, 9, 11, position=2).terms}
        for each in head_lens(trace, 2):
            context = f"{each.attention.name.rpartition('.')[0]}.context"
            assert each.logits.mean() == pytest.approx(0, abs=1e-9)
            if (context, each.head) in terms:
                assert each.logits[9] - each.logits[11] == pytest.approx(terms[context, each.head], abs=1e-9)
        assert any(number is not None for _, number in terms)
    sizes = {"layers": 2, "heads": 2, "d_model": 8, "norm": "post"}
    trace = in_float64("decoder", **sizes).trace(ids=[2, 5, 3, 6])
    terms = {(term.name, term.number): term.value for term in attribute(trace, 1, 4, position=3).terms}
    for each in head_lens(trace, 3):
        context = f"{each.attention.name.rpartition('.')[0]}.context"
        assert each.logits[1] - each.logits[4] == pytest.approx(terms[context, each.head], abs=1e-10)


def test_less_the_mean_takes_away_what_a_head_writes_everywhere():
    trace = in_float64("gpt2").trace(ids=[5, 6, 7, 8])
    own, tuned = (list(head_lens(trace, 2, layer=1, less_mean=less)) for less in (False, True))
    name = "decoder.1.self_attention"
    z, matrix = trace[f"{name}.context"], trace[f"{name}.output.weight"]
    x, norm = trace["decoder.1.feed_forward.residual"][2], trace["decoder.norm.weight"]
    head = trace[trace.program.step("output.logits").inputs[1]]
    head = head if head.shape[0] == len(x) else head.T
    for number, (plain, less) in enumerate(zip(own, tuned, strict=True)):
        mean = z[number].mean(axis=0) @ matrix[number * 8 : (number + 1) * 8]
        moved = (mean - mean.mean()) / np.sqrt(x.var() + 1e-5) * norm @ head
        np.testing.assert_allclose(plain.logits - less.logits, moved - moved.mean(), atol=1e-9)
    best = tuned[0].highest(3)
    assert best[0][1] == tuned[0].logits.max()
    assert [value for _, value in best] == sorted((value for _, value in best), reverse=True)


def test_what_spells_no_words_is_refused() -> None:
    refuses("no logits of words", lambda: list(head_lens(Model.load("attention").trace(), 0)))
    trace = Model.load("copy").trace(ids=[5, 6])
    refuses("no token 2: tokens are 0 to 1", lambda: list(head_lens(trace, 2)))
    refuses("no layer 9", lambda: list(head_lens(trace, 1, layer=9)))
    bert = Model.load(REFERENCES / "bert").trace(ids=[5, 6])
    refuses(r"is not linear|no logits of words", lambda: list(head_lens(bert, 1)))
    refuses("no output head", lambda: lens_of(Model.load("attention", device="cpu").trace().program))
