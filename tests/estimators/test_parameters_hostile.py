"""Values that no parameter expects: an answer or a sentence, never a panic of the core or an error of its insides."""

import inspect
import warnings

import numpy as np
import pytest

import likely
import likely.sklearn
from likely import Classifier, GaussianDiscriminant, KMeans, Mixture, NaiveBayes, TextClassifier

GENERATOR = np.random.default_rng(0)
Y = np.arange(12) % 2
X = np.abs(GENERATOR.normal(size=(12, 2)) + Y[:, None])
CODES = GENERATOR.integers(0, 3, (12, 2))
TEXTS = [" ".join(GENERATOR.choice(["free", "prize", "a", "b", "é", "noon"], 4)) for _ in range(12)]
ROWS = {"x": X[:, 0].tolist(), "c": ["abc"[i] for i in CODES[:, 0]], "f": (CODES[:, 1] > 0).tolist()}

OWN = {
    NaiveBayes: [(X, Y), (ROWS, Y)],
    GaussianDiscriminant: [(X, Y)],
    Classifier: [(ROWS, Y)],
    TextClassifier: [(TEXTS, Y)],
    Mixture: [(X,), (ROWS,)],
    KMeans: [(X,)],
}
FACES = [getattr(likely.sklearn, name) for name in likely.sklearn.__all__ if name != "TfidfTransformer"]

VALUES = [
    None,
    -1,
    0,
    10**12,
    10**400,
    5e-324,
    1e300,
    float("nan"),
    "",
    "é😀",
    "\ud800",
    b"a",
    (),
    {},
    {0: {"a": 10**400}},
    ["a", "b"],
    [["a"], [None]],
    [0.5, 10**400],
    (1, 10**6),
    object(),
    np.array([0.5, 0.5]),
    np.full((2, 2), np.nan),
    np.array([None, "a"]),
]
# So much work, such a file, or an encoding that Python looks up, is what is asked for.
LEFT_OUT = {"n_starts", "n_init", "verbose", "progress", "checkpoint", "input", "encoding"}


def parameters(kind):
    """Return the names of parameters; of the classifier those that it has beside naive Bayes."""
    known = {*LEFT_OUT, *(inspect.signature(NaiveBayes).parameters if kind is Classifier else ())}
    return [name for name in inspect.signature(kind).parameters if name not in known]


def refusals(kind, data, path=None):
    """Yield every parameter, value, and what it was refused with; all else that is raised is for the test."""
    for name in parameters(kind):
        more = (
            {"calibrate": False} if kind is TextClassifier and name in ("event", "smoothing", "counts", "idf") else {}
        )
        for value in VALUES:
            model = kind(**{**more, name: value})
            try:
                model.fit(*data)
                for ask in ("predict", "predict_proba", "transform"):
                    if hasattr(model, ask):
                        getattr(model, ask)(data[0])
                if path is not None:
                    model.save(path)
                    likely.load(path)
            except (ValueError, TypeError, NotImplementedError) as error:
                yield name, value, error
            except BaseException as error:
                raise AssertionError(f"{name}={value!r:.60} ended in {error!r:.200}") from error


def described(found):
    return [f"{name}={value!r:.40}: {error!r:.200}" for name, value, error in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "number"), [(kind, i) for kind, data in OWN.items() for i in range(len(data))])
def test_a_value_that_is_not_expected_is_refused_in_a_sentence(kind, number, tmp_path):
    found = list(refusals(kind, OWN[kind][number], tmp_path / "model"))
    assert len({name for name, *_ in found}) > len(parameters(kind)) / 2
    # sentences of scikit-learn's, and of NumPy's on arrays in the place of True and False
    others = ("n_samples", "riors", "ambiguous", "surrogates")
    unsaid = [one for one in found if not any(word in str(one[2]) for word in ("expected", *others))]
    assert described(unsaid) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FACES, ids=lambda kind: kind.__name__)
def test_faces_refuse_as_scikit_learn_does(kind):
    name = kind.__name__
    if "Vectorizer" in name:
        data = (TEXTS,)
    else:
        data = (X,) if "KMeans" in name or "Mixture" in name else (CODES if "Categorical" in name else X, Y)
    found = list(refusals(kind, data))
    assert len({name for name, *_ in found}) > len(parameters(kind)) / 2
    assert described(one for one in found if len(str(one[2]).split()) < 3) == []


@pytest.mark.parametrize("model", [KMeans(10**12), Mixture(10**9), Classifier(components=10**9)], ids=str)
def test_more_groups_than_rows_take_no_room(model):
    data = (ROWS, Y) if isinstance(model, Classifier) else (X,)
    if isinstance(model, Classifier):
        assert model.fit(*data).joint_.densities[0].weights.shape[1] <= len(Y)
    else:
        with pytest.raises(ValueError, match="rows"):
            model.fit(*data)


@pytest.mark.parametrize("unit", ["words", "characters", "characters in words"])
def test_n_grams_longer_than_texts_are_all_that_there_are(unit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some, all_of_them = (
            TextClassifier((1, n), unit=unit, calibrate=False, stop_words=["a"]).fit(TEXTS, Y) for n in (100, 10**6)
        )
    np.testing.assert_array_equal(some.predict_proba(TEXTS), all_of_them.predict_proba(TEXTS))
