"""Words of a command line read without Typer, as long as they are plain."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from likely.cli.options import Argument, Option


class Parameter(NamedTuple):
    """A parameter of a command: how it is written, of what type one value is, and whether there may be several."""

    name: str
    marker: Argument | Option
    kind: type[Any]
    several: bool
    optional: bool
    default: Any

    @property
    def required(self) -> bool:
        """Whether the command cannot do without."""
        return self.default is inspect.Parameter.empty


def parameters_of(function: Callable[..., None]) -> Iterator[Parameter]:
    """Return the parameters of a command."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, marker = get_args(hints[name])
        several = get_origin(kind) is Sequence
        optional = NoneType in get_args(kind)
        one = get_args(kind)[0] if several or optional else kind
        yield Parameter(name, marker, one, several, optional, parameter.default)


def plainly_read(function: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of a command; None if there is something that only Typer can read, or has to refuse.

    >>> from likely.cli.learning import merge
    >>> plainly_read(merge, ["a.likely", "b.likely", "-o", "c.likely"])
    {'output': 'c.likely', 'models': ['a.likely', 'b.likely']}
    >>> plainly_read(merge, ["a.likely", "--output=c.likely"])
    """
    parameters = list(parameters_of(function))
    flags = {flag: each for p in parameters if isinstance(p.marker, Option) for flag, each in _flags(p)}
    found: dict[str, Any] = {}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            places.append(word)
            continue
        parameter, value = flags.get(word, (None, None))
        if parameter is not None and value is None:
            value = _value(parameter, next(rest, ""))
        if parameter is None or value is None:
            return None
        if parameter.several:
            found.setdefault(parameter.name, []).append(value)
        else:
            found[parameter.name] = value
    return _complete(parameters, found, places)


def _flags(parameter: Parameter) -> Iterator[tuple[str, tuple[Parameter, bool | None]]]:
    """Return what may be written for an option, and what it means if no value follows."""
    for flag in parameter.marker.flags.split() if isinstance(parameter.marker, Option) else ():
        yes, _, no = flag.partition("/")
        yield yes, (parameter, True if parameter.kind is bool else None)
        if no:
            yield no, (parameter, False)


def _value(parameter: Parameter, word: str) -> Any:
    if not word or (word.startswith("-") and word != "-"):
        return None
    if parameter.kind is int:
        number = int(word) if word.isascii() and word.isdigit() else None
        least = parameter.marker.least if isinstance(parameter.marker, Option) else None
        return number if number is not None and (least is None or number >= least) else None
    if issubclass(parameter.kind, StrEnum):
        return parameter.kind(word) if word in list(parameter.kind) else None
    return word


def _complete(parameters: list[Parameter], found: Mapping[str, Any], places: list[str]) -> dict[str, Any] | None:
    """Return all arguments, unless one is lacking or too many."""
    complete = dict(found)
    left = list(places)
    for parameter in parameters:
        if isinstance(parameter.marker, Argument):
            if not left:
                return None
            complete[parameter.name] = left if parameter.several else left.pop(0)
            left = [] if parameter.several else left
        elif parameter.required and parameter.name not in complete:
            return None
    return None if left else complete
