"""The command line."""

import sys
from typing import Annotated

import typer

# Typer raises errors of usage of click's, or of its own copy of click: this is their class in both.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="likely",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(
    invoke_without_command=True,
    epilog="[bold]Examples[/bold]\n\nlikely demo\n\nlikely demo --seed 7",
)
def likely(
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


@app.command(
    epilog="[bold]Examples[/bold]\n\nlikely demo\n\nlikely demo --seed 7   [dim]# draw other new birds[/dim]",
)
def demo(seed: Annotated[int, typer.Option(min=0, help="Which new birds to draw.")] = 0) -> None:
    """Fit 344 penguins, missing cells and all; then classify, explain, and draw new ones."""
    from rich.console import Console

    from likely.demo import show

    show(Console(highlight=False), seed)


def main() -> None:
    """Run the command line. An error is one line and the exit code 2."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        message = str(getattr(error, "format_message", error.__str__)())
        _fail(f"{message.rstrip('.')}. Try 'likely --help'.")
    except (OSError, ValueError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    typer.echo(f"likely: {' '.join(message.split())}", err=True)
    sys.exit(2)
