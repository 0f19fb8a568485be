"""Peak memory beyond X, from the kernel's own count (Linux), on a million rows × 50 columns × 10 classes.

python benchmarks/memory.py
"""

from collections.abc import Callable
from pathlib import Path

from compare import classes_of_rows

from likely import GaussianDiscriminant, NaiveBayes


def peak_of(job: Callable[[], object]) -> float:
    """Return by how many MB a job raises the resident memory at its highest, its result included."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    job()
    return (_status("VmHWM") - before) / 1024


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise LookupError(field)


def main() -> None:
    X, y = classes_of_rows()
    print(f"{'peak memory beyond X, in MB':<40}{'fit':>8}{'predict':>10}{'predict_proba':>16}")
    print(f"{'the result itself':<40}{'':>8}{y.nbytes / 2**20:>10.1f}{len(y) * 80 / 2**20:>16.1f}")
    models = {
        "naive Bayes": NaiveBayes(),
        "LDA": GaussianDiscriminant(tied=True),
        "QDA": GaussianDiscriminant(),
        "LDA, Ledoit–Wolf": GaussianDiscriminant(tied=True, shrinkage="ledoit-wolf"),
    }
    for name, model in models.items():
        model.fit(X[:1000], y[:1000]).predict_proba(X[:1000])  # what is loaded once does not count
        jobs = [lambda m=model: m.fit(X, y), lambda m=model: m.predict(X), lambda m=model: m.predict_proba(X)]
        fit, predict, proba = (peak_of(job) for job in jobs)
        print(f"{name:<40}{fit:>8.1f}{predict:>10.1f}{proba:>16.1f}", flush=True)


if __name__ == "__main__":
    main()
