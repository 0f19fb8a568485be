"""The command line."""

import os
import sys
from typing import Annotated, Any

import typer

from likely.cli import answering, filling, learning, looking
from likely.cli.messages import explained, finished

app = typer.Typer(
    name="likely",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _examples(*lines: str) -> str:
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


@app.callback(
    invoke_without_command=True,
    epilog=_examples(
        "likely demo",
        "likely fit people.csv --target income -o income.likely",
        "likely predict income.likely new.csv -o answers.csv",
    ),
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


_COMMANDS = {
    learning.fit: (
        "likely fit people.csv --target income -o income.likely",
        "likely fit 'parts/*.parquet' --target income -o income.likely --ignore id --column zip=category",
        "zcat people.csv.gz | likely fit - --target income -o income.likely --missing '?'",
    ),
    answering.predict: (
        "likely predict income.likely new.csv",
        "likely predict income.likely new.csv -o answers.parquet --only",
        "cat new.jsonl | likely predict income.likely - --format jsonl | head",
    ),
    learning.evaluate: (
        "likely evaluate people.csv --target income",
        "likely evaluate people.csv --target income --model naive-bayes --folds 5 --json",
    ),
    answering.explain: (
        "likely explain income.likely new.csv",
        "likely explain income.likely new.csv --row 3 --label '>50K'",
    ),
    filling.impute: (
        "likely impute income.likely holes.csv -o whole.csv",
        "likely impute income.likely holes.csv --how draw --seed 1",
    ),
    filling.sample: (
        "likely sample income.likely -n 5",
        "likely sample income.likely -n 1000 --given sex=Female --given 'income=>50K' -o women.csv",
    ),
    looking.inspect: (
        "likely inspect income.likely",
        "likely inspect people.csv   [dim]# what its columns would be taken for[/dim]",
    ),
    learning.merge: ("likely merge north.likely south.likely -o both.likely",),
    looking.demo: ("likely demo", "likely demo --seed 7   [dim]# draw other new birds[/dim]"),
}

for _command, _lines in _COMMANDS.items():
    app.command(epilog=_examples(*_lines))(_command)


def run(arguments: list[str] | None = None) -> int:
    """Run a command, by default the one that was typed, and return the exit code. An error is one line, and 2."""
    with explained() as said:
        said.code = app(arguments, standalone_mode=False)
    return said.code if isinstance(said.code, int) else 0


class _WithoutPandas:
    """Lets nothing find pandas: Arrow would import all of it, if it is there, only to see that it is not used."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuse the one name, and leave others to those who find them."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used on the command line", name=name)


def main() -> None:
    """Run the command that was typed, in a process of its own."""
    sys.meta_path.insert(0, _WithoutPandas())
    # Matrices are small here: threads of the linear algebra would wait for each other. The core has its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    finished(run())


__all__ = ["app", "main", "run"]
