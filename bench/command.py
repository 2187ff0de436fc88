"""`taylorkern train` and `predict` beside LIBSVM's programs: whole processes, from their start to their end.

    python -m bench.command --data DIR [--quick] [--only a,b] [--json FILE]

One thread, by the clock on the wall. Files are in the system's cache when they are read. Ours is the `taylorkern` on
the path, with its defaults (unit rows, the degree that it chooses); it runs several times and the least counts.
LIBSVM's programs, which take long, run once (--quick: on a tenth of the rows).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

from . import data
from .run import run
from .stream import UNPACK
from .table import Row

C, GAMMA = "1", "0.0125"
# In place of svm-train and svm-predict: DATA MODEL, and DATA MODEL OUTPUT.
STAND_IN_TRAIN = (
    "import pickle, sys; from sklearn.datasets import load_svmlight_file; from sklearn.svm import SVC;"
    "X, y = load_svmlight_file(sys.argv[1], n_features=123);"
    "X.indices, X.indptr = X.indices.astype('i4'), X.indptr.astype('i4');"  # SVC refuses the loader's 64 bits
    f"pickle.dump(SVC(C={C}, gamma={GAMMA}, cache_size=100).fit(X, y), open(sys.argv[2], 'wb'))"
)
STAND_IN_PREDICT = (
    "import pickle, sys; import numpy as np; from sklearn.datasets import load_svmlight_file;"
    "X, y = load_svmlight_file(sys.argv[1], n_features=123);"
    "X.indices, X.indptr = X.indices.astype('i4'), X.indptr.astype('i4');"
    "told = pickle.load(open(sys.argv[2], 'rb')).predict(X);"
    "np.savetxt(sys.argv[3], told, fmt='%d'); print(f'Accuracy = {100 * (told == y).mean()}%')"
)


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    rows: int  # of each file
    repeats: int


FULL = Sizes(rows=10**9, repeats=10)
QUICK = Sizes(rows=3256, repeats=3)


class Bench:
    """The parts of the table; each yields its rows."""

    def __init__(self, directory, sizes, clock):
        self.directory, self.sizes, self.clock = directory, sizes, clock
        self.folder = tempfile.TemporaryDirectory()
        self.ours = shutil.which("taylorkern") or os.path.join(os.path.dirname(sys.executable), "taylorkern")
        print(f"timed: {self.ours}")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    @cached_property
    def files(self):
        """(training, test) rows as plain files."""
        for name, plain in (("adult", "a9a"), ("adult-test", "a9a.t")):
            found = data.find(name, *data.SOURCES[name].files, self.directory)
            with UNPACK.get(found.suffix, open)(found, "rb") as source, open(self.path(plain), "wb") as file:
                for _, line in zip(range(self.sizes.rows), source, strict=False):
                    file.write(line)
        return self.path("a9a"), self.path("a9a.t")

    def seconds(self, *command, repeats=None):
        """The least seconds that a process takes, and what it printed."""
        best = float("inf")
        for _ in range(repeats or self.sizes.repeats):
            wall, cpu = perf_counter(), _cpu_of_children()
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | ONE_THREAD)
            took = perf_counter() - wall if self.clock == "wall" else _cpu_of_children() - cpu
            best = min(best, took)
        return best, done.stdout

    @cached_property
    def trained(self):
        """Seconds of ours and of the peer, and the peer's name."""
        ours, _ = self.seconds(self.ours, "train", "-q", "-c", C, "-g", GAMMA, self.files[0], self.path("ours"))
        program = shutil.which("svm-train")
        command = [program, "-q", "-c", C, "-g", GAMMA] if program else [sys.executable, "-c", STAND_IN_TRAIN]
        peer, _ = self.seconds(*command, self.files[0], self.path("theirs"), repeats=1)
        return ours, peer, "svm-train" if program else "SVC, for want of svm-train"

    @cached_property
    def predicted(self):
        """(seconds, accuracy) of ours and of the peer, and the peer's name."""
        assert self.trained
        files = self.files[1], self.path("ours"), self.path("labels")
        ours = self.seconds(self.ours, "predict", *files)
        program = shutil.which("svm-predict") if "SVC" not in self.trained[2] else None
        command = [program] if program else [sys.executable, "-c", STAND_IN_PREDICT]
        peer = self.seconds(*command, self.files[1], self.path("theirs"), self.path("their-labels"), repeats=1)
        return ours, peer, "svm-predict" if program else "SVC, for want of svm-predict"

    def train(self):
        """a: Adult, from the file to the model file, C = 1, gamma = 1/80, the default degree (3)."""
        ours, peer, name = self.trained
        yield Row("a", "train, Adult", name, "s", ours, peer, peer / ours, at_least=50)

    def predict(self):
        """b: Adult's test rows, from the file to the file of labels."""
        (ours, _), (peer, _), name = self.predicted
        yield Row("b", "predict, Adult", name, "s", ours, peer, peer / ours, at_least=100)

    def accuracy(self):
        """c: the accuracy that both tell."""
        ours, peer = (float(re.search(r"Accuracy = ([0-9.]+)%", text)[1]) for _, text in self.predicted[:2])
        yield Row("c", "accuracy, Adult", self.predicted[2], "%", ours, peer, ours - peer, " points")

    def start(self):
        """d: starting."""
        assert self.trained
        peer, _ = self.seconds(sys.executable, "-c", "import sklearn.svm")
        for work in (["--version"], ["info", self.path("ours")]):
            ours, _ = self.seconds(self.ours, *work)
            yield Row("d", f"taylorkern {work[0]}", "import sklearn.svm", "s", ours, peer, peer / ours)


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PARTS = {"a": Bench.train, "b": Bench.predict, "c": Bench.accuracy, "d": Bench.start}


def _cpu_of_children():
    import resource  # Windows does not have it, and counts by the wall

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments=None):
    run("bench.command", __doc__, PARTS, Bench, (FULL, QUICK), arguments, clock="wall")


if __name__ == "__main__":
    main()
