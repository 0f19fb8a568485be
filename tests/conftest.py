"""Let the assertions of the modules that tests share say what they compared; and let no test depend on time."""

import warnings

import pytest
from engines import ray_session, spark_session
from hypothesis import settings

pytest.register_assert_rewrite("cases", "laws", "laws_of_answers", "oracle", "refusal", "sameness")
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="module")
def dask_frame():
    dd = pytest.importorskip("dask.dataframe")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield lambda frame, count: dd.from_pandas(frame, npartitions=count, sort=False)


@pytest.fixture(scope="module")
def ray_data():
    with ray_session() as data:
        yield data


@pytest.fixture(scope="module", params=["master", "remote"])
def spark(request):
    with pytest.MonkeyPatch.context() as patch, spark_session(patch, **{request.param: "local[2]"}) as session:
        yield session
