"""Values are written and checked by their types, and no name is looked up but those of the registry."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import likely
import likely.sklearn
from likely.families import FAMILIES
from likely.persistence.codec import decode, encode
from likely.persistence.registry import _RECORDS, ESTIMATORS, kind_of, record, tag_of


class Point(NamedTuple):
    x: float
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Curve:
    knots: NDArray[np.float64]
    closed: bool

    def validate(self) -> None:
        if self.knots.ndim != 1:
            raise ValueError("expected knots in one dimension, got others")


@dataclass(frozen=True)
class Drawing:
    kind: Literal["plan", "map"]
    points: tuple[Point, ...]
    parts: tuple[Curve | Point, ...] = ()
    names: dict[str, int] = field(default_factory=dict)
    anything: Any = None
    seen: str = field(default="", metadata={"saved": False})


DRAWING = Drawing(
    "map", (Point(1.5), Point(2, "b")), (Curve(np.array([1.0, 2.0]), True), Point(0.5)), {"a": 3}, (1, 2), "x"
)


def written():
    arrays = {}
    return json.loads(json.dumps(encode(DRAWING, "d", arrays))), arrays


def test_a_value_comes_back_by_its_type():
    described, arrays = written()
    assert described == {
        "kind": "map",
        "points": [{"x": 1.5, "name": None}, {"x": 2, "name": "b"}],
        "parts": [{"closed": True}, {"x": 0.5, "name": None}],
        "names": {"a": 3},
        "anything": {"is": "tuple", "items": [1, 2]},
    }
    assert arrays.keys() == {"d.parts.0.knots"}
    same = decode(described, Drawing, "d", arrays)
    assert (same.kind, same.points, same.names, same.anything, same.seen) == (
        "map",
        DRAWING.points,
        {"a": 3},
        (1, 2),
        "",
    )
    assert same.parts[1] == Point(0.5)
    assert same.parts[0].knots.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d, _: d.update(kind="other"), "expected 'plan' or 'map' as 'd.kind', got 'other'"),
        (lambda d, _: d.update(seen="x"), "expected an object of kind, points, parts, names, anything as 'd'"),
        (lambda d, _: d.pop("points"), "expected an object of kind, points, parts, names, anything as 'd'"),
        (lambda d, _: d.update(points={}), "expected a list as 'd.points', got {}"),
        (lambda d, _: d.update(points=((1, 2),)), "expected a list as 'd.points'"),
        (lambda d, _: d["points"][0].update(x=True + 0j), "expected a number as 'd.points.0.x'"),
        (lambda d, _: d["points"][0].update(x=np.inf), "expected a number as 'd.points.0.x', got inf"),
        (lambda d, _: d["points"][0].update(x=10**400), "expected a number as 'd.points.0.x'"),
        (lambda d, _: d["points"][0].update(name=3), "expected text or nothing as 'd.points.0.name', got 3"),
        (
            lambda d, _: d["parts"][0].pop("closed"),
            "expected an object of closed or an object of x, name as 'd.parts.0'",
        ),
        (lambda d, _: d["names"].update(a=True), "expected a whole number as 'd.names.a', got True"),
        (lambda d, _: d.update(anything={"is": "os.system", "fields": {}}), "expected a parameter"),
        (lambda d, _: d.update(anything={"is": "array", "name": "none"}), "expected the name of an array"),
        (lambda _, a: a.clear(), "expected the array 'd.parts.0.knots' of float64, got none"),
        (lambda _, a: a.update({"d.parts.0.knots": np.arange(2)}), "of float64, got int64"),
        (lambda _, a: a.update({"d.parts.0.knots": np.array([np.nan])}), "expected finite numbers in the array"),
        (lambda _, a: a.update({"d.parts.0.knots": np.zeros((2, 2))}), "expected knots in one dimension"),
    ],
)
def test_what_is_not_of_the_type_is_refused_in_a_sentence(change, said):
    described, arrays = written()
    change(described, arrays)
    with pytest.raises(ValueError, match=r"^expected .*") as caught:
        decode(described, Drawing, "d", arrays)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_name_of_the_registry_is_a_class_that_files_know_by_it():
    assert {tag: tag_of(record(tag)) for tag in _RECORDS} == {tag: tag for tag in _RECORDS}
    assert _RECORDS.keys() >= FAMILIES.keys()
    assert record("os.system") is None
    assert tag_of(Curve) is None


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_estimator_of_the_registry_is_known_by_its_name(kind):
    name = kind.removeprefix("sklearn ")
    assert kind_of(getattr(likely if name == kind else likely.sklearn, name)) == kind
