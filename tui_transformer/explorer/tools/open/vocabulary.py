"""Another vocabulary, chosen from a list or by its path."""

from __future__ import annotations

from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.tools.open.choices import Choice, vocabularies
from tui_transformer.explorer.tools.open.screen import OpenScreen
from tui_transformer.files import home_of, is_file, meant
from tui_transformer.text.vocabulary import built_in_vocabularies

FOLDER = "vocabularies"
"""Where the word lists of the program are."""


def open_from(port: Port) -> None:
    """The list of vocabularies; a sentence that the new one knows takes the place of one that it does not."""
    if port.session.model.vocabulary is None and not port.session.model.config.vocab_size:
        port.say("this model reads no words")
        return
    words = port.session.model.vocabulary
    own = words is not None and words.path is not None and words.path.parent.name == FOLDER
    in_use = "" if words is None else words.name if own and words.name in built_in_vocabularies() else str(words.path)
    choices = vocabularies(recent("vocabularies"), in_use)
    screen = OpenScreen("Vocabulary", choices, "a name or a file", "vocabulary")
    port.open(screen, lambda choice: _use(port, choice) if choice is not None else None)


def _use(port: Port, choice: Choice) -> None:
    """Read the vocabulary, and say what became of the sentence."""
    before = port.session
    changed = before.with_vocabulary(choice.name)
    port.change(changed)
    path = meant(home_of(choice.name))
    if is_file(path):
        remember("vocabularies", str(path.resolve()))
    if changed.text != before.text and before.text:
        unknown = "the sentence has words that this vocabulary does not know"
        port.say(port.hint(f"{unknown}: another takes its place, {{undo}} takes it back"))
