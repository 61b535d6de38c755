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
        "special=len(character) > 1)",
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
        "model/local_models.py",
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
        "            del blocks[: self._least.get(size, 0)]\n",
        "            del blocks[:0]\n",
        "tests/engine/test_pool.py::test_memory_that_nobody_asks_for_is_let_go_after_a_while",
    ),
    Fault(
        "a prompt longer than the model's length cannot grow",
        "generation/rooms.py",
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
        "a state of a survey that was changed is gone on from",
        "survey/state.py",
        "    if digest != digest_of(content).encode():\n",
        "    if not digest:\n",
        "tests/survey/test_hostile_survey.py::test_broken_states",
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
        "a result of a program is that of other arguments",
        "engine/by_program.py",
        "key = given, tuple(named.items())",
        "key = tuple(named.items())",
        "tests/engine/test_by_program.py::test_it_is_worked_out_once_for_each_program_and_what_else_is_given",
    ),
    Fault(
        "the pieces of a window of several heads are all of the first",
        "engine/parts.py",
        "yield (*(range(head, head + 1) for _ in heads), part, columns)",
        "yield (*(range(each.start, each.start + 1) for each in heads), part, columns)",
        "tests/engine/test_trace_regions.py::test_changed_steps_are_as_a_full_run_with_them[7-0-a head set to 0]",
    ),
    Fault(
        "a loss is relative to the second model",
        "analysis/two_models.py",
        "size, gap = float(np.linalg.norm(one)),",
        "size, gap = float(np.linalg.norm(other)),",
        "tests/analysis/test_two_models.py::test_the_head_that_lost_all_comes_first",
    ),
    Fault(
        "a head reads the keys of a neighbour",
        "analysis/circuits.py",
        "head * widths[0], head // shared",
        "head * widths[0], head % (heads // shared)",
        "tests/analysis/test_circuits.py::test_what_a_head_writes_is_its_part_of_the_attention[llama]",
    ),
    Fault(
        "of a sum of words only the first is left out of the answer",
        "analysis/similar.py",
        "cosines[[term.token for term in terms]] = -np.inf",
        "cosines[terms[0].token] = -np.inf",
        "tests/analysis/test_similar.py::test_no_word_of_the_sum_is_found",
    ),
    Fault(
        "a logit is attributed through a norm that is not centred",
        "analysis/attribution.py",
        "        toward = toward - toward.mean() if centred else toward\n",
        "",
        "tests/analysis/test_attribution.py::test_the_terms_sum_to_the_logit[False-albert]",
    ),
    Fault(
        "a query's own key is one of a cache",
        "analysis/attention_rows.py",
        "queries + (attention.keys.size - attention.queries.size)",
        "queries + 0 * (attention.keys.size - attention.queries.size)",
        "tests/analysis/test_head_measures.py::test_the_last_keys_are_the_queries_where_earlier_ones_were_kept",
    ),
    Fault(
        "minima of blocks have the upper bits of scales",
        "model/gguf_blocks.py",
        "(third >> 4) | ((second >> 2) & 48)",
        "(third >> 4) | ((first >> 2) & 48)",
        "tests/model/test_gguf_blocks.py::test_blocks_of_any_bytes_are_what_the_library_makes_of_them[Q4_K]",
    ),
    Fault(
        "both bounds of yarn's mixture are rounded down",
        "model/families/rope.py",
        "math.floor(low), math.ceil(high)",
        "math.floor(low), math.floor(high)",
        "tests/model/test_rope.py::test_yarn_rounds_the_bounds_of_its_mixture_outward",
    ),
    Fault(
        "the column of the cursor is marked as if the bars began at 0",
        "views/chart_data.py",
        "marked=marked - part.start,",
        "marked=marked,",
        "tests/views/test_chart_data.py::test_of_a_wide_row_the_columns_around_the_cursor_are_shown[60-40-20]",
    ),
    Fault(
        "the layer before is drawn",
        "views/whole.py",
        "members[min(number, len(members) - 1)]",
        "members[min(number, len(members)) - 1]",
        "tests/views/test_whole.py::test_every_step_of_the_layers_that_are_shown_is_in_one_box[albert]",
    ),
    Fault(
        "a causal mask that is too much hides the query itself",
        "diagnosis/causes/mask.py",
        "later = keys[:, None, None, :] > queries[:, None, :, None]",
        "later = keys[:, None, None, :] >= queries[:, None, :, None]",
        "tests/diagnosis/test_causes.py::test_a_causal_mask_where_all_keys_are_visible_is_seen",
    ),
    Fault(
        "a cut text of word pieces is longer by its frame",
        "text/word_pieces.py",
        "max(0, len(pieces) + len(frame) - max_tokens)",
        "max(0, len(pieces) - max_tokens)",
        "tests/text/test_tokenizer.py::test_a_cut_text_of_word_pieces_keeps_its_frame",
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
        "rows of values are those of the beginning in a text that grows",
        "engine/changes.py",
        "part.start - start : part.stop - start, :]",
        "0 : part.stop - part.start, :]",
        "tests/generation/test_edited_text.py::test_with_the_cache_without_it_and_as_a_trace[values of rows]",
    ),
    Fault(
        "experiments that change other steps share a pass",
        "analysis/passes.py",
        "lambda each: frozenset(change.name for change in each[1])",
        "lambda each: frozenset[str]()",
        "tests/analysis/test_passes.py::test_neighbours_that_change_the_same_steps_share_a_pass",
    ),
    Fault(
        "points of integrated gradients crowd and are not weighed for it",
        "analysis/input_attribution.py",
        "weight * CROWDING * place ** (CROWDING - 1) * slope",
        "weight * slope",
        "tests/analysis/test_input_attribution.py"
        "::test_integrated_gradients_are_the_mean_gradient_and_complete[baseline0]",
    ),
    Fault(
        "what is unknown to a Llama in GGUF is another token",
        "text/gguf_vocabulary.py",
        '("llama", "unknown_token_id"): 0',
        '("llama", "unknown_token_id"): 3',
        "tests/text/test_gguf_vocabulary.py::test_what_is_unknown_has_the_usual_id_unless_the_file_says_another",
    ),
    Fault(
        "a tensor is read from a shard that the index does not name",
        "model/tensors.py",
        "if weight_map.get(name, file) == file",
        "if True",
        "tests/model/test_shards.py::test_a_tensor_in_two_shards_is_read_where_the_index_says",
    ),
    Fault(
        "a log is read to lines without a step",
        "explorer/tools/runs/log.py",
        "if 0 <= step < LAST and step.is_integer():",
        "if 0 <= step < LAST or not step.is_integer():",
        "tests/explorer/tools/train/test_hostile_logs.py::test_a_line_without_a_step_is_left_out",
    ),
    Fault(
        "a part of a head that is null is the usual one",
        "model/families/rope.py",
        "partial if whole != 1.0 else ())",
        "())",
        "tests/model/test_rope.py::test_a_part_of_a_head_that_is_null_is_refused_where_a_part_is_turned",
    ),
)
