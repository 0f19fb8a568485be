"""The maps of the package agree: docs/architecture.md, CONTRIBUTING.md, the import linter, and the tree itself.

After a change of modules or of their first lines, ``python tests/test_maps.py`` writes the maps anew.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIKELY = ROOT / "likely"
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the project's own folder")


def first_line(module: Path) -> str:
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".")


def layers() -> list[list[str]]:
    """Return the rungs of the ladder, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return [[name.strip().removeprefix("likely.") for name in rung.split("|")] for rung in contracts[0]["layers"]][::-1]


def home(name: str) -> Path:
    return LIKELY / name / "__init__.py" if (LIKELY / name).is_dir() else LIKELY / f"{name}.py"


def tree() -> str:
    """Return the table of contents: packages from the lowest rung up, each module with the first line of its own."""
    lines = []
    for name in (name for rung in layers() for name in rung if name != "__main__"):
        folder = LIKELY / name
        lines.append(f"    {name + '/' if folder.is_dir() else name + '.py':<27}{first_line(home(name))}")
        if folder.is_dir():
            modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
            lines += [f"      {path.name:<25}{first_line(path)}" for path in modules]
    return "\n".join(lines)


def ladder() -> str:
    """Return the rungs as a table, the highest first."""
    rows = [
        f"| `likely/{name + '/' if (LIKELY / name).is_dir() else name + '.py'}` | {first_line(home(name))} |"
        for rung in reversed(layers())
        for name in rung
    ]
    return "\n".join(["| module | what it does |", "|---|---|", *rows])


MAPS = {"docs/architecture.md": tree, "CONTRIBUTING.md": ladder}


def between(text: str) -> re.Match[str]:
    found = re.search(r"(?<=<!-- map -->\n\n).*?(?=\n\n<!-- end of map -->)", text, flags=re.DOTALL)
    assert found, "expected a map between <!-- map --> and <!-- end of map -->"
    return found


@pytest.mark.parametrize("name", MAPS)
def test_a_map_shows_the_modules_as_they_describe_themselves(name):
    assert between((ROOT / name).read_text(encoding="utf-8")).group() == MAPS[name]()


def test_every_module_has_a_rung():
    packages = {path.parent.name for path in LIKELY.glob("*/__init__.py")}
    modules = {path.stem for path in LIKELY.glob("*.py")} - {"__init__"}
    assert sorted(name for rung in layers() for name in rung) == sorted(packages | modules)


def test_tests_lie_by_the_tree():
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    rungs = {name for rung in layers() for name in rung}
    assert folders <= rungs, folders - rungs
    assert {path.parent.name for path in LIKELY.glob("*/__init__.py")} - folders <= {"datasets"}


def test_every_module_says_what_it_is_in_one_line():
    for path in LIKELY.rglob("*.py"):
        assert first_line(path), path


if __name__ == "__main__":
    for name, made in MAPS.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        found = between(text)
        (ROOT / name).write_text(text[: found.start()] + made() + text[found.end() :], encoding="utf-8")
