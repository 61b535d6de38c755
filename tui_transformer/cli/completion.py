"""Completions that the shell offers when tab is pressed; nothing heavy is imported before that."""

from __future__ import annotations

import glob

import typer

USUAL = "question"
"""The model that is meant where none is named."""


def vocabularies(incomplete: str) -> list[str]:
    """Built-in vocabularies, and files."""
    from tui_transformer.text.vocabulary import built_in_vocabularies

    return _matching(built_in_vocabularies(), incomplete) + _files(incomplete)


def models(incomplete: str) -> list[str]:
    """Built-in models, and folders."""
    from tui_transformer.model.loading import BUILT_IN
    from tui_transformer.model.local_models import trained_models

    return _matching((*BUILT_IN, *trained_models()), incomplete) + _files(incomplete)


def steps(context: typer.Context, incomplete: str) -> list[str]:
    """The steps and weights of the model that the line names; none where it cannot be loaded."""
    from tui_transformer.errors import InputError
    from tui_transformer.model import Model

    try:
        program = Model.load(context.params.get("model") or USUAL).program(1)
    except InputError:
        return []
    return _matching((*program.names, *program.weights), incomplete)


def _matching(names: tuple[str, ...], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    return sorted(glob.glob(glob.escape(incomplete) + "*"))  # noqa: PTH207 - the beginning of a name, not a folder
