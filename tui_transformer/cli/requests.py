"""Commands of which a parameter is a dataclass: every field of it is an option.

Only the standard library and typer are imported here: `--help` and `--version` wait for nothing else.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_type_hints

from tui_transformer.cli.once import together

SEVERAL = "several"
"""Stands in the annotation of an option that takes a list: given several times, the lists are put together."""


def takes_request(function: Callable[..., None], request: type | None = None) -> Callable[..., None]:
    """A command one of whose parameters is a dataclass, each field of it an option; those of a base come last.

    Args:
        function: What the command does.
        request: The dataclass of the parameter `request`; by default the first that annotates a parameter.
    """
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    annotated = {each.annotation: each.name for each in parameters if dataclasses.is_dataclass(each.annotation)}
    kind: Any = request or next(iter(annotated))
    hints = get_type_hints(kind, include_extras=True)
    shared = {field.name for base in kind.__bases__ if dataclasses.is_dataclass(base) for field in _fields(base)}
    fields = sorted(_fields(kind), key=lambda field: field.name in shared)
    lists = {field.name for field in fields if SEVERAL in get_args(hints[field.name])}
    options = {
        field.name: (_several(hints[field.name]), None) if field.name in lists else (hints[field.name], _default(field))
        for field in fields
    }

    def gathered(given: dict[str, Any]) -> Any:
        return kind(**given | {name: together(given[name]) for name in lists})

    return takes_options(function, options, annotated.get(kind, "request"), gathered)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


def _default(field: dataclasses.Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def _several(annotation: Any) -> Any:
    return Annotated[list[str] | None, get_args(annotation)[1]]


def takes_options(
    function: Callable[..., None],
    options: Mapping[str, tuple[Any, Any]],
    parameter: str,
    gathered: Callable[[dict[str, Any]], Any],
) -> Callable[..., None]:
    """A command one of whose parameters is gathered from options.

    Args:
        function: What the command does.
        options: The annotation and default of each.
        parameter: The parameter of `function` that is no option.
        gathered: Makes it from what was given.
    """
    shared = [_parameter(name, *option) for name, option in options.items()]
    own = [
        _parameter(each.name, each.annotation, each.default)
        for each in inspect.signature(function, eval_str=True).parameters.values()
        if each.name != parameter
    ]

    def command(**given: Any) -> None:
        together = gathered({each.name: given.pop(each.name) for each in shared})
        function(**given, **{parameter: together})

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
