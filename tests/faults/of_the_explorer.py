"""Faults of the explorer, each with the test that has to notice it."""

from __future__ import annotations

from fault import Fault

OF_THE_EXPLORER = (
    Fault(
        "a message whose time is over has less than no time left",
        "explorer/shell/saying.py",
        "return max(super().time_left, SHORTEST)",
        "return super().time_left",
        "tests/explorer/shell/test_saying.py::test_a_message_is_over_when_its_time_is",
    ),
    Fault(
        "a widget that cannot be drawn ends the program",
        "explorer/widgets/careful.py",
        "            if not isinstance(self.app, Tells):\n",
        "            if True:\n",
        "tests/explorer/shell/test_failures.py::test_what_a_user_can_mend_is_said_in_the_pane_by_its_name",
    ),
    Fault(
        "a tool that cannot be shown ends the program",
        "explorer/app.py",
        "        if self.failures.ended(error):\n            return\n",
        "",
        "tests/explorer/shell/test_failures.py::test_a_screen_that_cannot_be_shown_is_left_for_the_one_below",
    ),
    Fault(
        "the explorer goes where a tensor is lost",
        "explorer/main/presenter.py",
        "            self._show_scene,\n            self._stay,\n",
        "            self._show_scene,\n",
        "tests/explorer/main/test_weights_that_change.py::test_the_explorer_says_so_and_stays_where_everything_is_read",
    ),
    Fault(
        "what was worked out of the nearest states is let go, not of those far away",
        "explorer/state/history.py",
        "return [*self.past[:-NEAR], *self.future[:-NEAR]]",
        "return [*self.past[NEAR:], *self.future[NEAR:]]",
        "tests/explorer/state/test_history.py::test_traces_of_states_that_are_far_away_are_let_go",
    ),
    Fault(
        "what a state nearby shares is let go with one far away",
        "explorer/state/cache.py",
        "            if id(memo) not in kept:\n",
        "            if True:\n",
        "tests/explorer/state/test_history.py::test_what_is_shared_with_a_state_nearby_stays",
    ),
    Fault(
        "the number of a step is that of the next",
        "explorer/state/going.py",
        "return stops[int(wanted) - 1]",
        "return stops[int(wanted) % len(stops)]",
        "tests/explorer/main/test_going.py::test_what_is_typed_leads_to_a_step[1-vocabulary]",
    ),
    Fault(
        "the drawn part of a row sums to 1, not the row",
        "explorer/state/hiding.py",
        "left = renormalized(view.window(rows, range(view.columns.size)), hidden)[:, part]",
        "left = renormalized(view.window(rows, columns), hidden[part])",
        "tests/explorer/main/test_hiding.py::test_part_of_a_row_is_that_part_of_the_whole_row",
    ),
    Fault(
        "the digits of a count are read backwards",
        "explorer/main/counting.py",
        "(self._digits + digit)[-3:]",
        "(digit + self._digits)[-3:]",
        "tests/explorer/main/test_counts.py::test_two_digits_and_a_step",
    ),
    Fault(
        "keys are read without end while none is handled",
        "explorer/shell/driver.py",
        "self._app.waiting > MOST_WAITING",
        "self._app.waiting < 0",
        "tests/explorer/shell/test_driver.py::test_reading_waits_as_long_as_very_many_events_do",
    ),
    Fault(
        "colours are not set again after attributes were taken back",
        "explorer/shell/pen.py",
        '                codes.append("0")\n                now = OWN\n',
        '                codes.append("0")\n',
        "tests/explorer/shell/test_frame.py::test_cells_beside_each_other_are_seen_as_they_are[attributes]",
    ),
    Fault(
        "blanks go with what stands beside them on another background",
        "explorer/shell/pen.py",
        "    if own.background != style.background or not (own.is_plain and style.is_plain):\n",
        "    if not (own.is_plain and style.is_plain):\n",
        "tests/explorer/shell/test_frame.py::test_cells_beside_each_other_are_seen_as_they_are[blanks]",
    ),
    Fault(
        "the program goes on without a widget of the main screen",
        "explorer/shell/failures.py",
        "in self._app.screen_stack[:NEEDED]:",
        "in self._app.screen_stack[: NEEDED - 1]:",
        "tests/explorer/shell/test_failures.py::test_the_program_ends_where_a_widget_of_the_main_screen_does",
    ),
    Fault(
        "an edit of a head takes the values of the first",
        "explorer/state/written_edits.py",
        "values = values[heads.start : heads.stop]",
        "values = values[: len(heads)]",
        "tests/cli/test_edit_option.py::test_arrays_and_means_of_texts_are_values",
    ),
    Fault(
        "a log is read to lines without a step",
        "explorer/tools/runs/log.py",
        "if 0 <= step < LAST and step.is_integer():",
        "if 0 <= step < LAST or not step.is_integer():",
        "tests/explorer/tools/train/test_hostile_logs.py::test_a_line_without_a_step_is_left_out",
    ),
)
