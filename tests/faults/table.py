"""Faults of a line, each with the test that has to notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        what: What goes wrong with it.
        file: Of the package.
        line: What stands there, exactly and once.
        planted: What is put in its place.
        test: The test that fails then, with its file.
    """

    what: str
    file: str
    line: str
    planted: str
    test: str


FAULTS = (
    Fault(
        "an operation writes over the source of the last window",
        "engine/computation.py",
        "fresh = first in values and first not in self.recent and not self._keeps(first)",
        "fresh = first in values and not self._keeps(first)",
        "tests/engine/test_last_window.py::test_no_operation_writes_over_it",
    ),
    Fault(
        "the source of a window is forgotten",
        "engine/computation.py",
        "            self.recent = fresh\n",
        "            self.recent = {}\n",
        "tests/engine/test_keep_and_drop.py"
        "::test_what_windows_are_made_from_is_there_until_another_step_needs_something_else",
    ),
    Fault(
        "an edit writes into the value of the trace without it",
        "engine/edits.py",
        "        array = array.copy()\n",
        "        pass\n",
        "tests/engine/test_edits.py::test_an_edited_weight_is_as_a_model_with_that_weight",
    ),
    Fault(
        "the first edit of a cell is told, not the last",
        "engine/edits.py",
        "for change in reversed(changes) if",
        "for change in changes if",
        "tests/engine/test_edits.py::test_what_was_done_last_to_a_cell_is_told",
    ),
    Fault(
        "the mean over a sentence of padding is NaN",
        "engine/edits.py",
        "return visible | ~visible.any(axis=1, keepdims=True)",
        "return visible",
        "tests/engine/test_edits.py::test_the_mean_over_a_sentence_of_padding_is_that_of_all_positions",
    ),
    Fault(
        "word pieces lose the white space before them",
        "text/vocabulary.py",
        "[line.rstrip() for line in text.rstrip()",
        "[line.strip() for line in text.rstrip()",
        "tests/text/test_vocabulary.py::test_a_word_piece_keeps_the_white_space_before_it",
    ),
    Fault(
        "the tokens added to a pair have no place",
        "text/pairs.py",
        "(at, at) if piece.sentence is None",
        "(0, 0) if piece.sentence is None",
        "tests/text/test_pairs.py::test_what_is_added_to_a_pair_lies_where_the_text_before_it_ends",
    ),
    Fault(
        "a special word between characters is taken for text",
        "text/characters.py",
        "special=len(found) > 1)",
        "special=False)",
        "tests/text/test_characters.py::test_special_words_are_told_from_characters",
    ),
    Fault(
        "top-p keeps one token more at the edge",
        "generation/sampling.py",
        "order[before < share]",
        "order[before <= share]",
        "tests/generation/test_sampling.py::test_tokens_that_make_up_exactly_the_share_are_enough",
    ),
    Fault(
        "a draw at the edge of a share is of the one before",
        "generation/sampling.py",
        'side="right"',
        'side="left"',
        "tests/generation/test_sampling.py::test_a_draw_at_the_edge_of_a_share_is_of_the_next_one_that_is_not_empty",
    ),
    Fault(
        "the last run of tokens may be repeated",
        "generation/rules.py",
        "starts = range(len(ids) - size + 1)",
        "starts = range(len(ids) - size)",
        "tests/generation/test_rules.py::test_no_run_of_tokens_comes_twice",
    ),
    Fault(
        "a run's log is written after its checkpoint",
        "learning/run.py",
        "        log.write(record, measured)\n        if due:\n            self.save()\n",
        "        if due:\n            self.save()\n        log.write(record, measured)\n",
        "tests/learning/test_run_folder.py::test_a_step_is_in_the_log_before_its_checkpoint_is_written",
    ),
    Fault(
        "validation draws what training draws",
        "learning/data.py",
        "_FOR_VALIDATION + i)",
        "i)",
        "tests/learning/test_tasks.py::test_training_and_validation_never_draw_the_same",
    ),
    Fault(
        "the second option replaces the first",
        "cli/once.py",
        "if count > 1 and",
        "if count > 2 and",
        "tests/cli/test_repeated_options.py::test_an_option_of_one_value_is_refused_the_second_time[explorer --theme]",
    ),
    Fault(
        "the installed program takes itself for a model",
        "model/found.py",
        "if place.resolve() != PROGRAM]",
        "]",
        "tests/cli/test_models_command.py::test_the_installed_program_does_not_list_itself_as_a_package",
    ),
    Fault(
        "a sentence alone opens another model",
        "cli/options.py",
        "OF_RANDOM_WEIGHTS = (*SIZES,",
        'OF_RANDOM_WEIGHTS = ("text", *SIZES,',
        "tests/cli/test_default_model.py::test_what_a_model_reads_and_how_it_is_computed_leaves_the_trained_one",
    ),
    Fault(
        "idle memory is kept for good",
        "engine/pool.py",
        "        for size in self._free.keys() - asked:\n",
        "        for size in ():\n",
        "tests/engine/test_pool.py::test_memory_that_nobody_asks_for_is_let_go_after_a_while",
    ),
    Fault(
        "a prompt longer than the model's length cannot grow",
        "generation/one_token.py",
        "size = max(min(max(SMALLEST_ROOM, 2 * end), self.most), end)",
        "size = min(max(SMALLEST_ROOM, 2 * end), self.most)",
        "tests/generation/test_writing.py::test_a_prompt_longer_than_the_model_was_trained_for_may_grow_by_a_token",
    ),
    Fault(
        "a message whose time is over has less than no time left",
        "explorer/shell/saying.py",
        "return max(super().time_left, SHORTEST)",
        "return super().time_left",
        "tests/explorer/shell/test_saying.py::test_a_message_is_over_when_its_time_is",
    ),
    Fault(
        "a dump reads files outside its folder",
        "diagnosis/dumps/debugger.py",
        "return file if inside and is_file(file) else None",
        "return file if is_file(file) else None",
        "tests/diagnosis/test_dumps.py::test_a_debugger_reads_no_file_outside_its_folder",
    ),
    Fault(
        "a widget that cannot be drawn ends the program",
        "explorer/widgets/careful.py",
        "            if not isinstance(self.app, Tells):\n",
        "            if True:\n",
        "tests/explorer/shell/test_undrawn.py::test_what_a_user_can_mend_is_said_in_the_pane_by_its_name",
    ),
    Fault(
        "the explorer goes where a tensor is lost",
        "explorer/main/presenter.py",
        "            self._show_scene,\n            self._stay,\n",
        "            self._show_scene,\n",
        "tests/explorer/main/test_weights_that_change.py::test_the_explorer_says_so_and_stays_where_everything_is_read",
    ),
)
