"""Faults of a line in what the library gives, each with the test that has to notice it."""

from __future__ import annotations

from fault import Fault

OF_THE_LIBRARY = (
    Fault(
        "a notebook is handed every step of a large model",
        "engine/export.py",
        "        if room < 0:\n            break\n",
        "",
        "tests/engine/test_notebook_and_saving.py"
        "::test_a_trace_of_many_steps_is_small_in_a_notebook_and_shows_what_is_there",
    ),
    Fault(
        "a sentence of several is taken in silence",
        "engine/trace.py",
        "    if item is None and trace.batch > 1:\n",
        "    if False:\n",
        "tests/analysis/test_tables.py::test_a_sentence_of_several_is_named",
    ),
    Fault(
        "a window of a step with a projection sees only its own columns",
        "engine/changes.py",
        "        return (*region[:-1], range(min(own.start, part.start), max(own.stop, part.stop)))\n",
        "        return region\n",
        "tests/analysis/test_probes.py::test_a_projection_leaves_nothing_along_the_vector_and_all_at_right_angles",
    ),
    Fault(
        "a probe is scored on tokens of the texts that it was fitted to",
        "analysis/probes.py",
        "    held = np.isin(text, _held_out(text, own, share, seed, of_classes=not numeric))\n",
        "    held = np.arange(len(text)) % 4 == 0\n",
        "tests/analysis/test_probes.py::test_no_text_is_divided_and_what_tokens_share_is_not_learnt",
    ),
    Fault(
        "a recording that goes on begins a new file behind one that is not full",
        "survey/recording.py",
        "        self._open = self._size < SHARD\n",
        "        self._open = False\n",
        "tests/survey/test_recording.py::test_what_is_stopped_goes_on_to_the_same_bytes",
    ),
    Fault(
        "a recording takes other texts for its own",
        "survey/recording.py",
        "        if self.index.texts and self._digest.hexdigest() != self.index.digest:\n",
        "        if False:\n",
        "tests/survey/test_recording.py::test_what_cannot_be_recorded_is_said",
    ),
    Fault(
        "a graph forgets that a norm takes the mean off",
        "analysis/graph_walk.py",
        "    yield scaled - scaled.mean(axis=-1, keepdims=True) if centred else scaled\n    yield from",
        "    yield scaled\n    yield from",
        "tests/analysis/test_graph.py::test_edges_into_a_node_and_its_biases_sum_to_what_it_is",
    ),
    Fault(
        "a graph follows an edited step as it was computed",
        "analysis/graph_walk.py",
        "        change.pass_back(held.backend, gradient, whole(step.shape))\n",
        "        pass\n",
        "tests/analysis/test_graph.py::test_what_is_edited_is_a_constant_and_the_rest_is_followed",
    ),
    Fault(
        "pruning keeps nodes that lead nowhere",
        "analysis/graph_influence.py",
        "        kept &= (there.any(axis=0) & into) | always\n",
        "        kept &= into | always\n",
        "tests/analysis/test_graph.py::test_influence_scores_and_pruning_are_those_of_circuit_tracer",
    ),
    Fault(
        "errors count as explained",
        "analysis/graph_influence.py",
        "    explained[followed] -= shares[:, errors].sum(axis=1)\n",
        "",
        "tests/analysis/test_graph.py::test_influence_scores_and_pruning_are_those_of_circuit_tracer",
    ),
)
