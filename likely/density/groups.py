"""Groups of rows: the components of one member of the joint, and what each column is like in each of them."""

from typing import NamedTuple

import numpy as np

from likely.density.columns import Encoded, NumberColumn, unknown_rows
from likely.density.combination import Combination, Density, component_shares
from likely.density.evidence import Evidence
from likely.density.table import Distribution, TableJoint
from likely.statistics import Array

# Kinds of members whose components are groups: of the first kind that there is, the member of most weight.
_GROUPING = ("trees", "scores")


class GroupColumn(NamedTuple):
    """What a column is like in each group, exactly as the joint has it."""

    column: int
    distribution: Distribution | None
    """of numbers: points in order, and p of each in each group, groups × points"""
    p: Array | None
    """of categories: p(value | group), groups × values as ``TableJoint.values_of`` has them"""
    difference: Array
    """of each group, how far the column is from that of all rows: the Kullback–Leibler divergence, in nats"""
    missing: Array
    """p(the cell is missing | group)"""


def grouping_member(joint: TableJoint) -> int:
    """Return the member whose components are groups; a tree, or a tree of hidden states, has one group."""
    for kind in _GROUPING:
        found = [m for m, member in enumerate(joint.members) if member.kind == kind]
        if found:
            return max(found, key=lambda m: float(joint.weights[m]))
    return int(joint.weights.argmax())


def group_shares(joint: TableJoint, combination: Combination, rows: Encoded, evidence: Evidence | None = None) -> Array:
    """Return p(group | row), rows × groups; ``combination``: that of the joint, given which cells are missing."""
    return component_shares(combination.members[grouping_member(joint)], rows, evidence)


def group_weights(joint: TableJoint) -> Array:
    """Return p(group)."""
    return group_shares(joint, joint.combination, unknown_rows(joint.columns, 1)).ravel()


def group_columns(joint: TableJoint) -> list[GroupColumn]:
    """Return what columns of numbers and categories are like in each group; columns without any cell are left out."""
    at, weights = grouping_member(joint), group_weights(joint)
    wanted = [j for j, c in enumerate(joint.columns) if j not in joint.text_columns and c.counts.sum() > 0]
    member, found = joint.members[at], []
    for j, p in zip(wanted, _of_components(joint.combination.members[at], len(weights), wanted), strict=True):
        column = joint.columns[j]
        missing = np.zeros(len(weights))
        if joint.missing is not None and member.missing is not None and j in joint.missing.columns:
            missing = np.exp(joint.missing.log_probability(member.missing, [j]))
        if isinstance(column, NumberColumn):
            spread = joint.distribution(column, p, None, j)
            found.append(GroupColumn(j, spread, None, _divergence(p, weights), missing))
        else:
            named = joint.named_values(j, p)
            found.append(GroupColumn(j, None, named, _divergence(named, weights), missing))
    return found


def _of_components(member: Density, k: int, columns: list[int]) -> list[Array]:
    """Return the marginals of columns in each component, components × support."""
    if not columns:
        return []
    with np.errstate(divide="ignore"):
        sure = np.log(np.eye(k))
    return member.marginals(unknown_rows(member.columns, k), columns, None, sure)


def _divergence(p: Array, weights: Array) -> Array:
    """Return Σ p(value | group) log (p(value | group) / p(value)) of each group."""
    whole = np.maximum(weights @ p, 1e-300)
    return np.asarray(np.maximum((p * np.log(np.maximum(p, 1e-300) / whole)).sum(axis=1), 0.0))
