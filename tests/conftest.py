"""Let the assertions of the modules that tests share say what they compared; and let no test depend on time."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("cases", "laws", "laws_of_answers", "oracle", "refusal")
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
