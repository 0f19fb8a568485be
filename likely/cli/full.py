"""The same commands under Typer: help, completion, and every way in which options can be written."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from likely.cli.commands import COMMANDS
from likely.cli.messages import MisuseError
from likely.cli.options import Argument
from likely.cli.reading import Parameter, parameters_of

# Typer raises errors of usage of click's, or of its own copy of click: this is their class in both.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def run_fully(words: list[str]) -> int:
    """Run a command and return the exit code."""
    try:
        code = application()(words, prog_name="likely", standalone_mode=False)
    except UsageError as error:
        message = str(getattr(error, "format_message", error.__str__)())
        context = getattr(error, "ctx", None)
        help_of = "likely" if context is None else context.command_path
        raise MisuseError(f"{message.rstrip('.')}. Try '{help_of} --help'.") from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def application() -> typer.Typer:
    """Return all commands."""
    app = typer.Typer(
        name="likely",
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    shown = [COMMANDS[name].examples[0] for name in ("demo", "fit", "predict", "evaluate")]
    app.callback(invoke_without_command=True, epilog=_epilog(shown))(_likely)
    for name, command in COMMANDS.items():
        app.command(name, epilog=_epilog(command.examples))(_under_typer(command.function))
    return app


def _likely(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """Model how the data came to be, and answer every question from that one model."""
    if version:
        from likely import __version__

        typer.echo(f"likely {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _epilog(examples: Any) -> str:
    from rich.markup import escape

    return "\n\n".join(["[bold]Examples[/bold]", *map(escape, examples)])


def _under_typer(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters are described in Typer's words."""

    @wraps(function)
    def command(**arguments: Any) -> None:
        function(**arguments)

    described = [_described(parameter) for parameter in parameters_of(function)]
    vars(command)["__signature__"] = inspect.Signature(described)
    command.__annotations__ = {each.name: each.annotation for each in described}
    del vars(command)["__wrapped__"]
    return command


def _described(parameter: Parameter) -> inspect.Parameter:
    marker = parameter.marker
    if isinstance(marker, Argument):
        described: Any = typer.Argument(metavar=marker.metavar, help=marker.help)
    else:
        described = typer.Option(*marker.flags.split(), help=marker.help, metavar=marker.metavar, min=marker.least)
    kind: Any = list[parameter.kind] if parameter.several else parameter.kind  # type: ignore[name-defined]
    kind = kind | None if parameter.optional else kind
    default = list(parameter.default) if parameter.several and not parameter.required else parameter.default
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )
