"""Every case obeys every law."""

import re
from dataclasses import replace

import laws
import laws_of_answers
import numpy as np
import pytest
from cases import CASES, Case, make_data, tables
from hypothesis import HealthCheck, Phase, given, settings

BY_PARTS = [
    laws.order_of_merging_does_not_matter,
    laws.adding_then_subtracting_gives_back,
    laws.any_batches_are_one_fit,
    laws.any_merge_is_one_fit,
]
LEARNING = [
    *BY_PARTS,
    laws.adding_nothing_changes_nothing,
    laws.order_of_rows_does_not_matter,
    laws.a_weight_of_two_is_a_row_twice,
    laws.a_zero_weight_is_no_row,
    laws.a_row_of_holes_says_nothing_of_x,
    laws.memory_order_does_not_matter,
    laws.number_type_does_not_matter,
    laws.pickling_is_the_identity,
]
ANSWERS = [
    laws_of_answers.the_joint_sums_to_the_density,
    laws_of_answers.posteriors_are_probabilities,
    laws_of_answers.explanations_add_up,
    laws_of_answers.forms_give_the_log_odds,
]
DISTRIBUTIONS = [
    laws_of_answers.a_missing_cell_is_summed_out,
    laws_of_answers.samples_have_the_moments_of_their_model,
    laws_of_answers.quadratic_boundaries_have_no_linear_form,
]
AT_AN_OFFSET = [
    *BY_PARTS,
    laws.adding_nothing_changes_nothing,
    laws.order_of_rows_does_not_matter,
    laws.a_weight_of_two_is_a_row_twice,
    laws.a_zero_weight_is_no_row,
]

moderate = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=False,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def every_law(laws):
    return pytest.mark.parametrize("law", laws, ids=lambda law: law.__name__)


@every_case
@every_law([*LEARNING, *ANSWERS])
def test_law(law, case: Case):
    case = _complete_by_parts(law, case)
    _assert_holds(law, case, tables(case))


@pytest.mark.parametrize("case", [case for case in CASES if case.offset], ids=str)
@every_law(AT_AN_OFFSET)
def test_law_at_an_offset_of_1e9_deviations(law, case: Case):
    case = _complete_by_parts(law, case)
    _assert_holds(law, case, tables(case, offset=True))


def _complete_by_parts(law, case: Case) -> Case:
    """Return a case without holes where what is expected of them depends on the part they come in."""
    return replace(case, holes=False) if case.expected and law in BY_PARTS else case


def _assert_holds(law, case: Case, strategy):
    """Try a law on data that hypothesis makes up: the same in every run, and others for every law and case."""

    def holds(data):
        law(case, data)

    holds.__name__ = re.sub(r"\W+", "_", f"{law.__name__} of {case}")
    moderate(given(data=strategy)(holds))()


@pytest.mark.parametrize("case", [case for case in CASES if case.density], ids=str)
@every_law(DISTRIBUTIONS)
def test_law_of_the_distribution(law, case: Case):
    law(case, make_data(case, [40, 25, 60], np.random.default_rng(5)))


@every_case
def test_threads_do_not_change_bits(case: Case):
    """With rows enough for every block of columns to be worth a thread (core/kernels/src/threads.rs: 400,000 cells)."""
    parts = [part.columns for part in case.make().fit(*_small(case)).joint_.parts]
    narrowest = min(len(case.kinds) if columns is None else len(columns) for columns in parts)
    rows = max(20_000, 410_000 // narrowest)
    sizes = [rows // 2, rows // 3, rows - rows // 2 - rows // 3]
    laws.threads_do_not_change_bits(case, make_data(case, sizes, np.random.default_rng(3)))


def _small(case: Case):
    data = make_data(case, [20, 20, 20], np.random.default_rng(1))
    return case.table(data.X), data.y
