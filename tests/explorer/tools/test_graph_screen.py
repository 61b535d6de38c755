"""An attribution graph in the whole explorer: walked from the answer back, at every size, and to the cell of a node."""

from __future__ import annotations

import time

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer import Graph, InputError, graph
from tui_transformer.analysis.attentions import Report
from tui_transformer.explorer.tools.graph import MOST_NAME, NEURONS, GraphScreen, Walked
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.session.view_state import Measure

TEXT = "Once there was a small girl called Anna, who lived by the sea with a duck. One day"
IDS = (2, 5, 3, 6, 4)


async def opened(explorer: Explorer) -> GraphScreen:
    open_tool("graph", explorer.parts.port)
    return await explorer.front(GraphScreen, lambda screen: screen.walked)


async def test_it_is_walked_from_the_answer_back_the_strongest_first() -> None:
    async with exploring(SMALL, model="story", text=TEXT) as explorer:
        found = graph(explorer.session.trace).prune()
        async for _ in explorer.sizes(SMALL, NARROW, MEDIUM, WIDE):
            screen = await opened(explorer)
            way = [found.edges[0].target]
            assert "logit ␣Anna" in screen.texts().heading
            for _ in range(3):
                edges = [edge for edge in found.edges if edge.target == way[-1]]
                assert [edge.source for edge in edges] == screen._sources
                assert f"{edges[0].weight:+.3f}".replace("-", "−")[:5] in explorer.text
                way.append(edges[0].source)
                await explorer.press("right")
            walked = [found.called(node) for node in screen.way]
            assert walked == [found.called(node) for node in way[: len(screen.way)]]
            assert screen.texts().heading.startswith(f"Attribution graph · {screen.walked.called(screen.way[-1])} at")
            assert "Attribution graph · " in explorer.text
            while len(screen.way) > 1:
                here = screen.way[-1]
                await explorer.press("left")
                assert screen._sources[screen.lines.cursor] == here
            await explorer.press("left", "escape")
            assert explorer.app.screen is explorer.main


async def test_enter_opens_the_cell_of_a_head_and_of_a_feature() -> None:
    async with exploring(NARROW, model="story", text=TEXT) as explorer:
        screen = await opened(explorer)
        head = next(i for i, node in enumerate(screen._sources) if node.kind == "head")
        node = screen._sources[head]
        await explorer.press(*["down"] * head, "enter")
        position = explorer.parts.explored.position
        assert (position.stop, position.place.head, position.place.row) == (node.step, node.number, node.token)
        await explorer.open("features")
        await explorer.press("escape")
        screen = await opened(explorer)
        place = next(i for i, node in enumerate(screen._sources) if node.kind == "feature")
        node = screen._sources[place]
        assert screen.labels[node.number] in screen._line(place).plain or len(screen._line(place).plain) < 80
        await explorer.press(*["down"] * place, "enter")
        position = explorer.parts.explored.position
        assert (position.stop, position.place.row, position.place.column) == (node.step, node.token, node.number)
        assert node.step == "decoder.1.output.features"


async def test_a_neuron_of_an_expert_is_named_and_enter_opens_its_cell() -> None:
    async with exploring(NARROW, model=str(REFERENCES / "qwen2_moe"), ids=IDS) as explorer:
        found = graph(explorer.session.trace, neurons=12).prune(1.0, 1.0)
        async for _ in explorer.sizes(NARROW, SMALL):
            screen = await opened(explorer)
            assert any(node.kind == "feed_forward" for node in screen._sources)
            screen._take(Walked(found, len(found.nodes), len(found.edges), 12, True, explorer.session.model))
            screen.show_lines()
            await explorer.settled()
            assert screen.walked is not None
            assert screen.walked.width <= MOST_NAME
            at = next(i for i, node in enumerate(screen._sources) if node.expert is not None and node.expert >= 0)
            node = screen._sources[at]
            assert f"1 expert {node.expert} neuron {node.number} " in screen._line(at).plain
            await explorer.press(*["down"] * at, "enter")
            position = explorer.parts.explored.position
            assert position.stop == node.step == f"decoder.1.feed_forward.experts.{node.expert}.gated"
            assert (position.place.row, position.place.column) == (node.token, node.number)


@pytest.mark.parametrize("model", ["gpt2", "qwen2_moe"], ids=["dense", "experts"])
async def test_a_key_shows_neurons_in_place_of_layers_and_stays_where_one_is(model: str) -> None:
    async with exploring(WIDE, model=str(REFERENCES / model), ids=IDS) as explorer:
        screen = await opened(explorer)
        found = graph(explorer.session.trace, neurons=NEURONS).prune()
        assert [node for node in found.nodes if node.kind == "neuron"]
        async for _ in explorer.sizes(WIDE, NARROW):
            head = next(i for i, node in enumerate(screen._sources) if node.kind == "head")
            await explorer.press(*["down"] * head, "right")
            way = [str(node) for node in screen.way]
            assert way[-1].startswith("head:")
            assert "f layers, neurons" in explorer.text
            await explorer.press("f")
            assert f"Attribution graph, {NEURONS} neurons a layer · " in explorer.text
            assert [str(node) for node in screen.way] == way
            assert screen._sources == [edge.source for edge in found.edges if edge.target == screen.way[-1]]
            await explorer.press("left")
            assert str(screen._sources[screen.lines.cursor]) == way[-1]
            assert {node.kind for node in screen._sources} >= {"head", "neuron"}
            neuron = next(i for i, node in enumerate(screen._sources) if node.kind == "neuron")
            assert screen.walked.called(screen._sources[neuron]) in explorer.text
            await explorer.press(*["up"] * head, *["down"] * neuron, "f")
            assert "Attribution graph · logit" in explorer.text
            assert {node.kind for node in screen._sources} >= {"head", "feed_forward"}
            assert screen.lines.cursor == 0


async def test_where_a_layer_is_on_the_way_one_is_led_back_to_what_both_graphs_have() -> None:
    async with exploring(NARROW, model=str(REFERENCES / "gpt2"), ids=IDS) as explorer:
        screen = await opened(explorer)
        layer = next(
            i for i, node in enumerate(screen._sources) if node.kind == "feed_forward" and screen.walked.into(node)
        )
        await explorer.press(*["down"] * layer, "right")
        assert [node.kind for node in screen.way] == ["logit", "feed_forward"]
        await explorer.press("f")
        assert [node.kind for node in screen.way] == ["logit"]


async def test_neurons_that_cannot_be_had_or_are_ended_by_esc_leave_the_graph_of_layers(monkeypatch) -> None:
    def failing(*_: object, **__: object) -> Graph:
        raise InputError("it takes more memory than there is")

    def endless(*_: object, report: Report, **__: object) -> Graph:
        while True:
            report("graph · 17 of up to 2,000 nodes followed")
            time.sleep(0.001)

    async with exploring(NARROW, model=str(REFERENCES / "gpt2"), ids=IDS) as explorer:
        screen = await opened(explorer)
        walked, lines = screen.walked, screen._sources
        # what cannot be taken apart
        monkeypatch.setattr("tui_transformer.explorer.tools.graph.graph", failing)
        await explorer.press("f")
        assert any("more memory" in said for said in explorer.messages)
        assert screen.neurons == 0
        assert "Attribution graph · logit" in explorer.text
        # what is ended
        monkeypatch.setattr("tui_transformer.explorer.tools.graph.graph", endless)
        await explorer.keys("f")
        await explorer.until(lambda: "computing graph · 17 of" in explorer.text)
        assert "esc ends" in explorer.text
        await explorer.press("escape")
        assert explorer.app.screen is screen
        assert (screen.walked, screen._sources, screen.neurons) == (walked, lines, 0)
        assert "computing" not in explorer.text
        await explorer.leave()


async def test_two_words_that_are_measured_are_two_answers() -> None:
    async with exploring(NARROW, model="copy", ids=(5, 6, 7, 5)) as explorer:
        await explorer.change(explorer.session.with_measure(Measure("difference", (6, 7))))
        screen = await opened(explorer)
        assert {node.number for node in screen._sources} == {6, 7}
        await explorer.press("down", "right")
        assert len(screen.way) == 1
        await explorer.press("left")
        assert screen.way == ()


async def test_a_model_of_two_stacks_is_walked() -> None:
    async with exploring(NARROW, model="dates") as explorer:
        screen = await opened(explorer)
        assert any(name.startswith("dec ") for name in map(screen.walked.called, screen._sources))
