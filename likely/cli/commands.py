"""The commands by name, each with examples of its use."""

from collections.abc import Callable
from typing import NamedTuple

from likely.cli import answering, filling, grouping, learning, looking


class Command(NamedTuple):
    """What a command does, and how it is used."""

    function: Callable[..., None]
    examples: tuple[str, ...]


COMMANDS = {
    "fit": Command(
        learning.fit,
        (
            "likely fit people.csv --target income -o income.likely",
            "likely fit 'parts/*.parquet' --target income -o income.likely --ignore id --column zip=category",
            "zcat people.csv.gz | likely fit - --target income -o income.likely --missing '?'",
            "likely fit reviews.csv --text review --target stars -o stars.likely",
            "likely fit mail --text-dirs -o mail.likely",
        ),
    ),
    "predict": Command(
        answering.predict,
        (
            "likely predict income.likely new.csv",
            "likely predict income.likely new.csv -o answers.parquet --only",
            "cat new.jsonl | likely predict income.likely - --format jsonl | head",
            "echo 'win a prize now' | likely predict mail.likely -",
        ),
    ),
    "evaluate": Command(
        learning.evaluate,
        (
            "likely evaluate people.csv --target income",
            "likely evaluate people.csv --target income --model naive-bayes --folds 5 --json",
        ),
    ),
    "cluster": Command(
        grouping.cluster,
        (
            "likely cluster people.csv -k 3 -o groups.likely",
            "likely cluster people.csv -k auto -o groups.likely --ignore id",
            "likely predict groups.likely people.csv   # the rows with the group of each",
        ),
    ),
    "explain": Command(
        answering.explain,
        (
            "likely explain income.likely new.csv",
            "likely explain income.likely new.csv --row 3 --label '>50K'",
        ),
    ),
    "impute": Command(
        filling.impute,
        (
            "likely impute income.likely holes.csv -o whole.csv",
            "likely impute income.likely holes.csv --how draw --seed 1",
        ),
    ),
    "sample": Command(
        filling.sample,
        (
            "likely sample income.likely -n 5",
            "likely sample income.likely -n 1000 --given sex=Female --given 'income=>50K' -o women.csv",
        ),
    ),
    "inspect": Command(
        looking.inspect,
        (
            "likely inspect income.likely",
            "likely inspect people.csv   # what its columns would be taken for",
        ),
    ),
    "merge": Command(
        learning.merge,
        (
            "likely fit north.csv --target income -o north.likely --model naive-bayes",
            "likely merge north.likely south.likely -o both.likely",
        ),
    ),
    "demo": Command(looking.demo, ("likely demo", "likely demo --seed 7   # draw other new birds")),
}
