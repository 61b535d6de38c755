"""Measures over many texts, their sums, and features: how strong and how frequent they are."""

from __future__ import annotations

import itertools
import math
import statistics
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.effects import effects
from tui_transformer.analysis.head_measures import layer_measures
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.measures import Place, Reading, Text
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.survey.measures import (
    MEASURES,
    USUAL,
    Asked,
    Item,
    check_asked,
    chosen,
    readings,
    survey,
    unit_of,
)
from tui_transformer.analysis.survey.sums import LARGEST, NONE, Counts, Examples, Moments, Source, Sums
from tui_transformer.analysis.survey.table import Origin, examples, half_width, marked, rows, student
from tui_transformer.analysis.tokens import tokens_of
from tui_transformer.engine.targets import every
from tui_transformer.errors import InputError, UsageError
from tui_transformer.features.dictionary import Features
from tui_transformer.model import Model
from tui_transformer.text.encoding import Token

# Measures of a survey in a text: against plain formulas, and against the same measures of one text
TEXT = "The fox found 2 shells . The fox found a stone ."
AWKWARD = [0.1, -0.3, 1e16 / 3 % 1e9, 1e-9, 7.0, -(2.0**30) / 3, 123456.789, 0.1]
ONE, TWO, THREE = (Place("decoder self-attention", layer, "first") for layer in range(3))


@pytest.fixture(scope="module")
def story() -> Model:
    return Model.load("story", device="cpu")


def read(model: Model, *names: str, text: str = TEXT) -> dict[tuple[str, int, str], Reading]:
    trace = model.trace(text, cut=True)
    measured = readings(Text(model, trace), names)
    return {(reading.place.part, reading.place.layer, reading.place.measure): reading for reading in measured}


def items(*texts: str) -> list[Item]:
    return [Item(number, Source("a.txt", number + 1, text)) for number, text in enumerate(texts)]


@pytest.mark.parametrize("name", ["story", "encoder", "encoder-decoder"])
def test_head_measures_are_those_of_one_text(name: str):
    model = Model.load(name, device="cpu")
    text = "the waves, the waves." if name != "story" else TEXT
    measured, trace = read(model, *USUAL, text=text), model.trace(text)
    for layer in (layer_measures(trace, step, Reader(model.vocabulary)) for step in attentions(trace.program)):
        for measure, values in layer.values.items():
            reading = measured[layer.attention.group, layer.attention.layer, measure]
            np.testing.assert_array_equal(reading.values, values)


def test_measures_of_a_text_are_those_of_its_steps_with_the_token_where_they_are_largest(story: Model):
    trace = story.trace(TEXT)
    weights = trace["decoder.1.self_attention.weights"].astype(np.float64)
    previous = np.stack([np.diag(head, -1) for head in weights])
    reading = read(story, "previous")["decoder self-attention", 1, "previous"]
    np.testing.assert_allclose(reading.strongest, previous.max(axis=1))
    np.testing.assert_array_equal(reading.positions, previous.argmax(axis=1) + 1)
    # kinds of keys
    tokens = tokens_of(trace, story.vocabulary, attentions(trace.program)[0].keys)
    words = [story.word(token) for token in tokens.ids.tolist()]
    weights = trace["decoder.0.self_attention.weights"].astype(np.float64)
    dots = np.array([word.strip("Ġ") == "." for word in words])
    first = int(dots.argmax())
    reading = read(story, "kind")["decoder self-attention", 0, "kind:punctuation"]
    np.testing.assert_allclose(reading.values, weights[:, first:, dots].sum(axis=-1).mean(axis=-1))
    # activations
    trace, measured = story.trace(TEXT), read(story, "neurons", "context")
    neurons = trace["decoder.0.feed_forward.activation"]
    reading = measured["decoder feed-forward", 0, "neurons"]
    np.testing.assert_allclose(reading.values, neurons.mean(axis=0, dtype=np.float64))
    np.testing.assert_array_equal(reading.strongest, neurons.max(axis=0))
    np.testing.assert_array_equal(reading.positions, neurons.argmax(axis=0))
    heads = np.linalg.norm(trace["decoder.0.self_attention.context"].astype(np.float64), axis=-1)
    np.testing.assert_allclose(measured["decoder self-attention", 0, "context"].strongest, heads.max(axis=-1))


@pytest.mark.parametrize("name", ["story", "encoder"])
def test_attention_by_distance_is_the_mean_of_diagonals(name: str):
    model = Model.load(name, device="cpu")
    text = TEXT if name == "story" else "the day began, and the day was good."
    weights = model.trace(text)[attentions(model.program(3))[0].name].astype(np.float64)
    measured = read(model, "distance", text=text)
    part = next(iter(measured))[0]
    for distance in (1, 2, 3) if name == "story" else (-3, -1, 0, 2):
        expected = [np.diag(head, -distance).mean() for head in weights]
        np.testing.assert_allclose(measured[part, 0, f"distance:{distance}"].values, expected, atol=1e-7)
    n = weights.shape[1]
    queries = range(4, n)
    expected = [np.mean([head[i, max(i - 7, 0) : i - 3].mean() for i in queries]) for head in weights]
    np.testing.assert_allclose(measured[part, 0, "distance:4..7"].values, expected, atol=1e-7)


def test_lens_depth_is_the_last_layer_that_changes_the_first_choice(story: Model):
    trace = story.trace(TEXT)
    lens = lens_of(trace.program)
    words = [lens.spell(trace, depth, range(lens.tokens)).words[:, 0].tolist() for depth in lens.depths]
    depths = []
    for token in range(lens.tokens):
        spelled = [layer[token] for layer in words]
        depths.append(next(at for at in range(len(spelled)) if len(set(spelled[at:])) == 1))
    measured = read(story, "lens")
    whole = next(reading for (_, _, measure), reading in measured.items() if measure == "lens:depth")
    assert whole.values[0] == pytest.approx(np.mean(depths))
    assert whole.strongest[0] == max(depths)
    assert measured["logit lens", len(lens.depths) - 2, "lens:agreement"].values[0] == 1.0


@pytest.mark.parametrize(("name", "mean"), [("ablation", False), ("ablation-mean", True)])
def test_ablation_is_that_of_one_text(story: Model, name: str, mean: bool):
    trace = story.trace(TEXT)
    expected = [effect for _, effect in effects(trace, every(trace.program), mean=mean)]
    measured = read(story, name)
    for field in ("divergence", "change"):
        steps = attentions(trace.program)
        values = np.concatenate([measured[step.group, step.layer, f"{name}:{field}"].values for step in steps])
        np.testing.assert_array_equal(values, [getattr(effect, field) for effect in expected])


def test_ablation_is_measured_by_the_metric_that_is_asked_for(story: Model):
    ids = story.encode(TEXT).ids
    trace, steps = story.trace(ids=ids), attentions(story.program(len(ids)))
    asked = {("difference", (40, 41)): Metric("difference", (40, 41)), ("loss", ()): Metric("loss", (), (*ids[1:], -1))}
    for (name, tokens), metric in asked.items():
        text = Text(story, trace, metric=(name, tokens))
        found = {each.place: each for each in readings(text, ["ablation"])}
        values = [found[Place(step.group, step.layer, f"ablation:{name}")].values for step in steps]
        expected = [effect.change for _, effect in effects(trace, "head", metric=metric)]
        np.testing.assert_array_equal(np.concatenate(values), expected)
    assert not list(readings(Text(story, story.trace(ids=[5]), metric=("loss", ())), ["ablation"]))
    assert (unit_of("ablation:loss"), unit_of("ablation:difference")) == ("nats", "")
    refuses("name ablation or ablation-mean too", lambda: check_asked(story, Asked(("first",), metric=("loss", ()))))
    refuses("is about 2 tokens", lambda: check_asked(story, Asked(("ablation",), metric=("difference", (4,)))))


def test_a_batch_gives_what_its_parts_give_together(story: Model):
    texts = items(TEXT, "A crow", "The fox found a shell . The fox", "Once there was a small girl called Mira", "a")
    asked = Asked(tuple(MEASURES), top=2)
    whole = survey(story, texts, asked).to_bytes()
    for cut in (1, 3):
        first, second = survey(story, texts[:cut], asked), survey(story, texts[cut:], asked)
        assert (first + second).to_bytes() == whole
        assert survey(story, texts, asked).places == (second + first).places


def test_rows_hold_mean_interval_and_count(story: Model):
    texts = items(TEXT, "A crow", "The fox found a shell . The fox found a stone .")
    table = [
        row for row in rows(survey(story, texts, Asked(("induction", "first"))), Origin("story")) if row.layer == 1
    ]
    induction = next(row for row in table if row.measure == "induction" and row.head == 0)
    values = [read(story, "induction", text=each.source.text) for each in texts]
    numbers = [each["decoder self-attention", 1, "induction"].values[0] for each in values]
    numbers = [number for number in numbers if not math.isnan(number)]
    assert (induction.count, len(numbers)) == (2, 2)  # a crow repeats nothing
    assert induction.mean == pytest.approx(np.mean(numbers))
    half = 12.7062047364 * np.std(numbers, ddof=1) / math.sqrt(2)
    assert (induction.low, induction.high) == pytest.approx((np.mean(numbers) - half, np.mean(numbers) + half))
    assert next(row for row in table if row.measure == "first").count == 3


def test_examples_name_the_text_the_line_and_the_token_and_a_long_text_is_cut(story: Model):
    texts = items("A crow", TEXT)
    strongest = list(examples(survey(story, texts, Asked(("neurons",), top=1, layers=frozenset({1}))), Origin("story")))
    assert len(strongest) == story.program(2).shape("decoder.1.feed_forward.activation")[-1]
    for example in strongest[:20]:
        neurons = story.trace(example.text)["decoder.1.feed_forward.activation"]
        assert neurons[example.position, example.neuron] == example.value
        assert texts[example.line - 1].source.text == example.text
    # cut
    sums = survey(story, items(TEXT), Asked(("first",), length=3))
    assert (sums.counts.texts, sums.counts.tokens, sums.counts.cut) == (1, 3, 1)
    text = next(examples(sums, Origin("story"))).text
    assert TEXT.startswith(text)
    assert story.encode(text).ids == story.encode(TEXT).ids[:3]
    sums = survey(Model.load("encoder", device="cpu"), items("the waves", "   "), Asked(("first",)))
    assert (sums.counts.texts, sums.counts.left_out) == (1, 1)


def test_what_a_model_lacks_is_said_before_texts_are_read(monkeypatch: pytest.MonkeyPatch):
    for model, asked, said in (
        ("attention", Asked(), "no vocabulary"),
        ("story", Asked(layers=frozenset({9})), "there is no layer 9: layers are 0 to"),
    ):
        loaded = Model.load(model, device="cpu")
        refuses(said, lambda asked=asked, loaded=loaded: check_asked(loaded, asked))
    # a model without heads that can be measured still has neurons
    model = Model.load("story", device="cpu")
    monkeypatch.setattr("tui_transformer.analysis.survey.measures.attentions", lambda _: ())
    check_asked(model, Asked(("neurons", "lens")))
    with pytest.raises(InputError, match="no attention whose heads could be measured: use lens, neurons, features"):
        check_asked(model, Asked(("neurons", "first")))


def test_measures_are_chosen_by_name_and_rows_have_units():
    assert chosen(["induction", "entropy", "induction"]) == ("entropy", "induction")
    refuses("no measure is called 'surprise'", lambda: chosen(["surprise"]), UsageError)
    for row, unit in (
        ("entropy", "bits"),
        ("ablation:change", "nats"),
        ("ablation-mean:relative", ""),
        ("lens:depth", "layers"),
        ("kind:word", ""),
    ):
        assert unit_of(row) == unit


# Sums of a survey: exact, and the same however they are put together
def columns(values: list[float]) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_mean_and_deviation_are_those_of_exact_arithmetic_in_any_order():
    moments, exact = Moments.of(columns(AWKWARD)), [Fraction(value) for value in AWKWARD]
    assert moments.mean(0) == float(statistics.mean(exact))
    assert moments.deviation(0) == pytest.approx(math.sqrt(statistics.variance(exact)), rel=1e-15)
    values = [1.0 + each * 2.0**-40 for each in range(5)]
    assert Moments.of(columns(values)).deviation(0) == pytest.approx(statistics.stdev(range(5)) * 2.0**-40, rel=1e-9)
    moments = Moments.of(columns([1.0, math.nan, math.inf, -math.inf, 2 * LARGEST, 3.0]))
    assert (int(moments.count[0]), moments.mean(0)) == (2, 2.0)
    assert math.isnan(Moments.of(columns([math.nan])).mean(0))
    assert math.isnan(Moments.of(columns([1.0])).deviation(0))
    parts = [Moments.of(columns([value])) for value in AWKWARD[:5]]
    means = {sum_of(order).mean(0) for order in itertools.permutations(parts)}
    assert means == {Moments.of(columns(AWKWARD[:5])).mean(0)}


def sum_of(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def test_the_interval_uses_student_t_and_one_text_has_none():
    for freedom, expected in (
        (1, 12.7062047364),
        (2, 4.30265272991),
        (3, 3.18244630528),
        (10, 2.22813885196),
        (399, 1.9659272959),
        (400, 1.9659122858),
    ):
        assert student(freedom) == pytest.approx(expected, rel=1e-6)
    assert math.isnan(half_width(math.nan, 1))
    assert half_width(2.0, 4) == pytest.approx(3.18244630528, rel=1e-6)


def candidates(values: list[float], texts: list[int], top: int = 3) -> Examples:
    return Examples.of(np.array([values]), np.array(texts), np.zeros((1, len(values)), np.int64), top)


def test_examples_are_the_strongest_however_texts_were_put_together():
    best = candidates([1.0, 3.0, 3.0, 2.0], [9, 8, 4, 1])
    assert best.texts.tolist() == [[4, 8, 1]]
    assert best.values.tolist() == [[3.0, 3.0, 2.0]]
    best = candidates([math.nan, 1.0], [0, 1])
    assert best.texts.tolist() == [[1, NONE, NONE]]
    values, texts = [float(text * 7 % 4) for text in range(30)], list(range(30))
    parts = [candidates(values[i : i + 7], texts[i : i + 7]) for i in range(0, 30, 7)]
    whole = candidates(values, texts)
    for order in itertools.permutations(parts):
        assert sum_of(order).texts.tolist() == whole.texts.tolist()


def sums(place: Place, value: float, text: int) -> Sums:
    examples = candidates([value], [text])
    return Sums(
        Counts(1, 5),
        ((place, 1),),
        Moments.of(columns([value])),
        examples,
        {text: Source("a.txt", text + 1, f"text {text}")},
    )


def test_sums_with_different_measures_and_counts_add_up_to_all_of_them_in_any_order():
    parts = [sums(ONE, 1.0, 0), sums(TWO, 2.0, 1), sums(THREE, 3.0, 2), sums(ONE, 5.0, 3)]
    expected = sum_of(parts).to_bytes()
    assert {sum_of(order).to_bytes() for order in itertools.permutations(parts)} != set()
    for order in itertools.permutations(parts):
        total = sum_of(order)
        assert [place.layer for place, _ in total.places] == [0, 1, 2]
        assert [total.moments.mean(unit) for unit in range(3)] == [3.0, 2.0, 3.0]
        assert total.examples.texts.tolist() == [[3, 0, NONE], [1, NONE, NONE], [2, NONE, NONE]]
        assert sorted(total.sources.items()) == sorted(sum_of(parts).sources.items())
    assert Sums.from_bytes(expected)[0].to_bytes() == expected
    # counts
    words = ["fox", "crow", "fox", "shell", "stone", "map", "sea", "crow", "ship"]
    parts = [Counts(1, 5, unknown=1, unknown_words=((text, 2, word),)) for text, word in enumerate(words)]
    for order in (parts, parts[::-1], parts[4:] + parts[:4]):
        total = sum_of(order)
        assert (total.texts, total.unknown) == (9, 9)
        assert [word for _, _, word in total.unknown_words] == ["fox", "crow", "shell", "stone", "map", "sea"]
    assert Sums.from_bytes(Sums.nothing(1).to_bytes())[0].counts == Counts()


def test_grouping_changes_nothing_texts_that_are_no_example_any_more_are_let_go_and_a_broken_file_is_no_sums():
    a, b, c = sums(ONE, 0.1, 0), sums(TWO, 0.2, 1), sums(ONE, 0.3, 2)
    assert ((a + b) + c).to_bytes() == (a + (b + c)).to_bytes()
    assert (Sums.nothing(3) + a).to_bytes() == a.to_bytes()
    total = sum_of([sums(ONE, float(text), text) for text in range(10)])
    assert sorted(total.sources) == [7, 8, 9]
    for data in (b"", b"PK", sums(ONE, 1.0, 0).to_bytes()[:-40]):
        with pytest.raises(ValueError, match="not the sums"):
            Sums.from_bytes(data)


# Features, against their steps

DICTIONARIES = Path(__file__).parents[2] / "features"


def test_features_are_strong_and_frequent_as_their_steps_say():
    model = in_float64("decoder", d_model=32, heads=4)
    with pytest.raises(InputError, match="decoder has no features: name a dictionary with --features"):
        check_asked(model, Asked(("features",)))
    model = model.with_features(Features.load(DICTIONARIES / "saelens-topk"), "decoder.0.output")
    check_asked(model, Asked(("features",)))
    texts = ("the waves crashed", "the shore")
    items = [Item(number, Source("a.txt", number + 1, text)) for number, text in enumerate(texts)]
    sums = survey(model, items, Asked(("features",), top=2))
    values = [model.trace(text)["decoder.0.output.features"] for text in texts]
    found = {(row.measure, row.feature): row for row in rows(sums, Origin("decoder"))}
    assert {(row.part, row.layer, row.head, row.neuron) for row in found.values()} == {
        ("decoder.0.output", 0, None, None)
    }
    for feature in range(96):
        strong, often = (found[name, feature] for name in ("features", "features:frequency"))
        assert strong.mean == pytest.approx(np.mean([each[:, feature].mean() for each in values]), abs=1e-12)
        assert often.mean == pytest.approx(np.mean([(each[:, feature] != 0).mean() for each in values]), abs=1e-12)
    shown = list(examples(sums, Origin("decoder")))
    assert {example.measure for example in shown} == {"features"}
    for example in shown:
        own = values[example.line - 1][:, example.feature]
        assert (example.value, example.position) == (own.max(), int(own.argmax()))
        assert example.value > 0
        assert example.marked == ""
    for example in examples(sums, Origin("decoder"), model):
        words = texts[example.line - 1].split()
        words[example.position] = f"«{words[example.position]}»"
        assert example.marked == " ".join(words)
    assert unit_of("features:frequency") == ""


@pytest.mark.parametrize(
    ("text", "start", "end", "wanted"),
    [
        ("the cat sat", 3, 7, "the «cat» sat"),
        ("cats", 0, 3, "«cat»s"),
        ("uncat", 2, 5, "un«cat»"),
        ("cat", 3, 3, ""),
        ("a  b", 1, 2, "a« » b"),
        ("y" * 50 + "cat", 50, 53, "… " + "y" * 40 + "«cat»"),
        ("x " * 40 + "cat" + " y" * 40, 80, 83, "… " + "x " * 19 + "«cat»" + " y" * 14 + " …"),
        ("one\ncat\ntwo", 4, 7, "one «cat» two"),
    ],
)
def test_a_token_is_marked_in_its_text(text: str, start: int, end: int, wanted: str) -> None:
    assert marked(text, Token(0, "", start, end)) == wanted
