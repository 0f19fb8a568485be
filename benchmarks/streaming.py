"""Naive Bayes of Parquet files larger than memory need be, beside the time that Arrow takes just to read the columns.

    python benchmarks/streaming.py FOLDER [ROWS]

Writes ROWS (20 million by default, about 3 GB) of 19 numbers and a label into FOLDER, if it is empty, in eight
files. Every round reads them by pyarrow and fits them, each in a process of its own, whose peak of memory is the
kernel's count (not that of getrusage, which begins with the peak of the process that started it). Shown are medians,
and the ratio of each round.
"""

import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES, GROUP, ROUNDS = 8, 250_000, 5
NAMES = [f"x{j}" for j in range(19)]

BEFORE = """
import sys, time
from pathlib import Path
began = time.perf_counter()
folder = sys.argv[1]
"""
READ = """
import pyarrow.parquet as pq
for path in sorted(Path(folder).glob("*.parquet")):
    for batch in pq.ParquetFile(path).iter_batches():
        pass
"""
FIT = """
from likely import NaiveBayes
model = NaiveBayes().fit(folder, "label")
"""
AFTER = """
told = dict(line.split(":") for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.perf_counter() - began, int(told["VmHWM"].split()[0]) / 1024)
"""


def write(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(3, len(NAMES)))
    schema = pa.schema([*((name, pa.float64()) for name in NAMES), ("label", pa.string())])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        with pq.ParquetWriter(folder / f"part-{number}.parquet", schema) as writer:
            for first in range(0, rows // FILES, GROUP):
                size = min(GROUP, rows // FILES - first)
                label = rng.integers(0, 3, size)
                cells = rng.normal(size=(len(NAMES), size)) + means[label].T
                labels = pa.array(np.array(["a", "b", "c"])[label])
                writer.write_table(pa.table([*cells, labels], names=schema.names))


def measured(job: str, folder: Path) -> tuple[float, float]:
    told = subprocess.run(
        [sys.executable, "-c", BEFORE + job + AFTER, folder], capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, told.stdout.split())
    return seconds, megabytes


def main() -> None:
    folder, rows = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000_000
    if not list(folder.glob("*.parquet")):
        write(folder, rows)
    for path in folder.glob("*.parquet"):  # into the memory that the system keeps files in
        path.read_bytes()
    rounds = [(measured(READ, folder), measured(FIT, folder)) for _ in range(ROUNDS)]
    for name, i in (("pyarrow, reading", 0), ("likely, reading and fitting", 1)):
        seconds, megabytes = zip(*(each[i] for each in rounds), strict=True)
        print(f"{name:<30}{median(seconds):7.2f} s{median(megabytes):9.0f} MB")
    print("ratios: " + ", ".join(f"{fit[0] / read[0]:.2f}" for read, fit in rounds))


if __name__ == "__main__":
    main()
