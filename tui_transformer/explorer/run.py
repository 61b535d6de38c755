"""Start the explorer from the command line's options."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from tui_transformer.errors import InputError
from tui_transformer.explorer.state.session import Session
from tui_transformer.model.options import ModelOptions
from tui_transformer.text.samples import sample_sentence, sample_target


def run(
    options: ModelOptions,
    text: str | None = None,
    ids: tuple[int, ...] | None = None,
    theme: str | None = None,
    *,
    pair: str | None = None,
    decoder_text: str | None = None,
    decoder_ids: tuple[int, ...] | None = None,
) -> int:
    """Explore a model until the user leaves.

    Returns:
        The exit code.

    Raises:
        InputError: The model or the sentence cannot be used; nothing was shown.
    """
    session = open_session(options, text, ids, pair=pair, decoder_text=decoder_text, decoder_ids=decoder_ids)
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)  # where a shell exports them, Textual would not follow a resize
    os.environ.setdefault("TEXTUAL_FPS", "250")  # a key waits for the next frame: at 60 a second up to 17 ms
    from tui_transformer.explorer.app import ExplorerApp
    from tui_transformer.explorer.shell.preferences import preferences_path, read_preferences

    preferences = read_preferences(preferences_path())
    app = ExplorerApp(session, replace(preferences, theme=theme or preferences.theme))
    app.run()
    if app.failure is not None:
        print(f"tui-transformer: {app.failure}", file=sys.stderr)  # noqa: T201 - the terminal is restored by now
        return 1
    return app.return_code or 0


def open_session(
    options: ModelOptions,
    text: str | None,
    ids: tuple[int, ...] | None,
    *,
    pair: str | None = None,
    decoder_text: str | None = None,
    decoder_ids: tuple[int, ...] | None = None,
) -> Session:
    """The model with its sentence, and with what its decoder has written where it reads that beside; checked."""
    model = options.load()
    if decoder_text is not None or decoder_ids is not None:
        model.encode_target()
    if text is not None and ids is not None:
        raise InputError("give either a text or token IDs")
    if not model.config.vocab_size and (text is not None or ids is not None):
        raise InputError(f"{model.name} reads no tokens: its Q, K and V are given")
    if text is None and ids is None and model.config.vocab_size:
        if model.vocabulary is None:
            ids = tuple(range(min(8, model.config.vocab_size)))
        else:
            text = sample_sentence(model.vocabulary, model.name)
            if decoder_text is None and decoder_ids is None:
                decoder_text = sample_target(model.vocabulary, model.name)
    session = Session(
        model,
        text or "",
        ids,
        pair=pair,
        budget=options.budget,
        cut=options.cut,
        decoder_text=decoder_text or "",
        decoder_ids=decoder_ids,
    )
    _ = session.trace
    return session
