"""What a model is, as plain dicts and lists for JSON, and in a few lines of text."""

import json
import math
from collections import Counter
from typing import Any

from likely.messages import printable

_MOST_CLASSES = 8
# Categories by name are what the user calls categorical.
_OTHER_NAMES = {"named categories": "categorical"}


def described(model: Any) -> dict[str, Any]:
    """Return what a fitted model is."""
    counts = model.class_count_
    selection = getattr(model, "selection_", None)
    return {
        "kind": type(model).__name__,
        "target": getattr(model, "target_", None),
        "rows": _count(counts.sum()),
        "classes": [
            {"label": label, "rows": _count(count), "share": float(share)}
            for label, count, share in zip(model.classes_.tolist(), counts, model.priors_, strict=True)
        ],
        "columns": _columns(model),
        "members": None if selection is None else _members(selection),
        "calibration": None if selection is None else _calibration(selection),
    }


def _columns(model: Any) -> list[dict[str, Any]]:
    families: dict[int, str] = {}
    for part in model.joint_.parts:
        columns = range(model.n_features_in_) if part.columns is None else part.columns
        families.update(dict.fromkeys(columns, _OTHER_NAMES.get(part.family.name, part.family.name)))
    schema = getattr(model, "schema_", None)
    if schema is None:
        from likely.cli.models import plain_schema

        schema = plain_schema(model)
    by_name = {name: families.get(j) for j, name in enumerate(schema.names)}
    return [
        {"name": name, "kind": column.kind, "family": by_name.get(name)}
        for column in schema.columns
        for name in column.outputs or (column.name,)
    ]


def _members(selection: Any) -> list[dict[str, Any]]:
    from likely.families.regularised import Regularised

    found = []
    for member, weight in zip(selection.members, selection.calibration.weights.tolist(), strict=True):
        discriminant = isinstance(member.family, Regularised)
        chosen = {"diagonal": member.family.diagonal, "strength": member.family.strength} if discriminant else {}
        name = "discriminant of ranks" if discriminant else member.family.name
        found.append({"name": name, "features": member.encoding.width, "weight": weight, **chosen})
    return found


def _calibration(selection: Any) -> dict[str, Any]:
    labels, bias = selection.calibrated.tolist(), selection.calibration.bias.tolist()
    return {"rows": _count(selection.calibration.rows), "bias": [{"label": a, "bias": b} for a, b in zip(labels, bias)]}  # noqa: B905


def _count(rows: Any) -> int | float:
    """Return how many rows there are: with weights that need not be a whole number."""
    number = float(rows)
    return int(number) if number.is_integer() else number


def groups(found: dict[str, Any]) -> bool:
    """Say whether the classes of a model are groups that it has found."""
    return str(found["kind"]) == "Mixture"


def title(found: dict[str, Any]) -> str:
    """Return what kind of model it is, and of what, if that has a name."""
    if groups(found):
        number = len(found["classes"])
        return f"{found['kind']} of {number} group{'s' * (number > 1)}"
    return str(found["kind"]) if found["target"] is None else f"{found['kind']} of {found['target']}"


def as_text(found: dict[str, Any]) -> str:
    """Return a few lines about a model that was saved."""
    took = f" in {found['seconds']:.2g} s" if "seconds" in found else ""
    classes = sorted(found["classes"], key=lambda each: -each["share"])
    shares = [f"{each['label']} {100 * each['share']:.1f} %" for each in classes[:_MOST_CLASSES]]
    if len(classes) > _MOST_CLASSES:
        shares.append(f"and {len(classes) - _MOST_CLASSES} more")
    families = Counter(column["family"] for column in found["columns"] if column["family"])
    left_out = [column["name"] for column in found["columns"] if not column["family"]]
    lines = [
        f"{title(found)}: {found['rows']:,.0f} rows{took}",
        f"{'groups ' if groups(found) else 'classes'}  {', '.join(shares)}",
        f"columns  {', '.join(f'{count} {family}' for family, count in families.most_common())}",
    ]
    if left_out:
        lines.append(f"left out {', '.join(left_out[:_MOST_CLASSES])}{' …' if len(left_out) > _MOST_CLASSES else ''}")
    return "\n".join(map(printable, [*lines, f"saved in {found['model']}"]))


def printed_json(found: Any) -> None:
    """Print an object as JSON; what JSON has no number for is null."""
    text = json.dumps(_plain(found), ensure_ascii=False, allow_nan=False)
    print(printable(text, lambda character: json.dumps(character)[1:-1]))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
