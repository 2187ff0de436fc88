"""Vowpal Wabbit on rows of ours: its text and cache in a temporary folder, one process for each training."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
from scipy import sparse

BITS = 22  # of its table of weights
# From a small process: the peak memory of a process that a large one starts is told as at least that of the large one.
LAUNCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run([sys.executable, "-m", "vowpalwabbit", *sys.argv[1:]], stderr=subprocess.STDOUT)
wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"wall": wall, "cpu": used.ru_utime + used.ru_stime, "memory": 1024 * used.ru_maxrss}))
sys.exit(done.returncode)
"""


class Vowpal:
    """Rows in its cache, to be trained on with all products of up to `degree` columns.

    Raises ImportError when it is not installed.
    """

    def __init__(self, X, y, degree, options=()):
        if importlib.util.find_spec("vowpalwabbit") is None:
            raise ImportError("No module named 'vowpalwabbit'")
        self.folder = tempfile.TemporaryDirectory()
        self.options = ["--loss_function", "hinge", "-b", str(BITS), "--holdout_off", *options]
        for k in range(2, degree + 1):
            self.options += ["--interactions", "f" * k]
        self.rows = self.path("rows")
        write(self.rows, sparse.csr_matrix(X), y)
        self.features = self._memory = 0  # of the last training: what it visited, and its bytes
        self.train(1, "-k")  # makes the cache

    def path(self, name):
        """A file in the folder."""
        return os.path.join(self.folder.name, name)

    def train(self, passes, *options):
        """Train a model from the cache; returns seconds by clock."""
        cache = ["-d", self.rows, "--cache_file", self.path("cache"), "--passes", str(passes), "-f", self.path("model")]
        measured, told = self._run(*cache, *self.options, *options)
        self._memory = measured.pop("memory")
        self.features = int(re.search(r"total feature number = (\d+)", told)[1])
        return measured

    def pass_seconds(self, clock, passes=4, repeats=5):
        """(seconds of one training pass, the features that it visits)."""
        once, several = (min(self.train(n)[clock] for _ in range(repeats)) for n in (1, 1 + passes))
        return (several - once) / passes, self.features / (1 + passes)

    def predict(self, X):
        """Labels, -1 and 1."""
        write(self.path("test"), sparse.csr_matrix(X), np.ones(X.shape[0]))
        self._run("-t", "-d", self.path("test"), "-i", self.path("model"), "-p", self.path("told"))
        return np.where(np.loadtxt(self.path("told")) > 0, 1, -1)

    def memory(self):
        """The peak of the last training's process, in bytes."""
        return self._memory

    def _run(self, *arguments):
        done = subprocess.run([sys.executable, "-c", LAUNCH, *arguments], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"Vowpal Wabbit ended with {done.returncode}: {done.stderr[-500:]}")
        *told, measured = done.stdout.splitlines()
        return json.loads(measured), "\n".join(told)


def write(path, X, y):
    """Rows as its text."""
    labels = np.where(np.asarray(y) > 0, "1", "-1").tolist()
    ends, indices, values = X.indptr.tolist(), X.indices.tolist(), X.data.tolist()
    with open(path, "w") as file:
        for i, label in enumerate(labels):
            pairs = zip(indices[ends[i] : ends[i + 1]], values[ends[i] : ends[i + 1]], strict=True)
            file.write(f"{label} |f {' '.join([f'{j}:{x:.7g}' for j, x in pairs])}\n")
