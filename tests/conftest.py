"""Let the assertions of the modules that tests share say what they compared."""

import pytest

pytest.register_assert_rewrite("cases", "laws", "laws_of_answers", "oracle", "refusal")
