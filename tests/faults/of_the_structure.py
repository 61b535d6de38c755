"""Violations of what ARCHITECTURE.md claims, planted together: the test of each claim has to fail."""

from __future__ import annotations

from fault import Fault

TESTS = "tests/test_architecture.py"
HEAD = '"""Planted."""\n\nfrom __future__ import annotations\n\n'
METHODS = "".join(f"\n    def method_{number}(self) -> None: ...\n" for number in range(46))


def file(what: str, path: str, text: str, test: str) -> Fault:
    """A file that should not be there."""
    return Fault(what, path, "", HEAD + text, f"{TESTS}::{test}")


OF_THE_STRUCTURE = (
    Fault(
        "a private name of Textual is used outside of the guard",
        "explorer/shell/base.py",
        "return is_there(self)",
        "return is_there(self) and not self._closing",
        f"{TESTS}::test_private_names_of_textual_are_used_in_the_guard_alone",
    ),
    Fault(
        "a file that is not there is named",
        "text/README.md",
        "`dispatch.py`:",
        "`dispatching.py`:",
        f"{TESTS}::test_every_path_that_the_pages_name_is_there",
    ),
    Fault(
        "a folder has no row",
        "../ARCHITECTURE.md",
        "\n| `survey/` | ",
        "\n| survey | ",
        f"{TESTS}::test_every_folder_of_the_package_has_a_row",
    ),
    Fault(
        "a value that says what is on the screen can be written to",
        "session/view_state.py",
        "@dataclass(frozen=True)\nclass ViewState:",
        "@dataclass\nclass ViewState:",
        f"{TESTS}::test_what_says_everything_on_the_screen_is_a_value[ViewState]",
    ),
    *(
        file("modules lie loose", f"explorer/loose_{number}.py", "", "test_few_modules_of_the_explorer_lie_loose")
        for number in range(8)
    ),
    file(
        "a tool is imported by a name in a string",
        "explorer/tools/by_name.py",
        "import importlib\n\nTOOL = importlib.import_module('tui_transformer.explorer.tools.links')\n",
        "test_nothing_in_the_explorer_is_imported_by_a_name_in_a_string",
    ),
    file(
        "a timer is set in another way",
        "explorer/tools/soon.py",
        "def soon(screen, function):\n    screen.set_timer(0.1, function)\n",
        "test_timers_are_set_in_one_way",
    ),
    file("a class has many methods", "text/large.py", f"class Large:\n{METHODS}", "test_every_class_is_small[package]"),
    file(
        "a pane stands on another pane",
        "explorer/main/deep.py",
        "from tui_transformer.explorer.main.panes.cell import CellPane\n\n\nclass DeepPane(CellPane): ...\n",
        "test_widgets_and_families_are_shallow",
    ),
    file(
        "a screen stands on another screen",
        "explorer/tools/deep.py",
        "from tui_transformer.explorer.tools.links import LinksScreen\n\n\nclass Deep(LinksScreen): ...\n",
        "test_screens_stand_on_one_shallow_base",
    ),
    file(
        "a session is written to",
        "session/writing.py",
        "def keep(session, name, value):\n    vars(session)[name] = value\n",
        "test_a_session_is_never_written_to",
    ),
    file(
        "a screen looks at a key that is not declared",
        "explorer/tools/keys.py",
        "def on_key(self, event):\n    return event.key == 'q'\n",
        "test_keys_are_looked_at_only_where_a_text_is_typed_or_a_number",
    ),
    file("a file is long", "text/long.py", "NUMBER = 1\n" * 400, "test_files_are_short"),
    file("no contract is about a folder", "fresh/__init__.py", "", "test_the_contracts_are_about_every_folder"),
    file(
        "a file imports one that imports it, where types are checked",
        "text/one.py",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from tui_transformer.text import other\n",
        "test_no_files_import_each_other_in_a_circle",
    ),
    file(
        "a file imports one that imports it, in a function",
        "text/other.py",
        "def function():\n    from tui_transformer.text import one\n",
        "test_no_files_import_each_other_in_a_circle",
    ),
    file(
        "a tool has a thread of its own",
        "explorer/tools/thread.py",
        "import threading\n\n\ndef begin(work):\n    threading.Thread(target=work).start()\n",
        "test_training_alone_has_a_thread_besides_the_worker_and_a_model_that_is_read",
    ),
    file(
        "results are kept for so many programs",
        "analysis/kept.py",
        "from functools import lru_cache\n\n\n@lru_cache(8)\ndef kept(program: Program) -> int: ...\n",
        "test_nothing_that_belongs_to_a_program_is_kept_for_so_many_programs",
    ),
    file(
        "a JSON file is read in another way",
        "text/reader.py",
        "import json\n\n\ndef read(path):\n    return json.loads(path.read_text())\n",
        "test_json_and_toml_files_have_one_reader",
    ),
    file(
        "the folder of a user is looked up in another place",
        "text/home.py",
        "from pathlib import Path\n\nHOME = Path('~').expanduser()\n",
        "test_the_folder_of_a_user_is_looked_up_in_one_place",
    ),
)
