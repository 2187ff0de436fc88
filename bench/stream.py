"""Reading svmlight files beside scikit-learn's loader, and training on one that is larger than memory, in one table.

    python -m bench.stream --data DIR [--quick] [--only a,b] [--json FILE]

One thread. Files are in the system's cache when they are read. Ours is timed several times and the least counts; so is
the peer on small files, and once on the large one. Results are compared bit for bit. Part d is timed by the clock on
the wall, each side in a process of its own, and has a second thread: the one that reads.
"""

import bz2
import gc
import lzma
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_svmlight_file

from taylorkern.stream import iter_svmlight, read_svmlight

from . import data, epoch
from .memory import _forget_peak, _resident
from .run import run
from .table import Row
from .timing import CLOCKS, interleave


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    large: int  # bytes of the large file
    kinds: int  # bytes of each of the others
    repeats: int
    trained: int  # bytes of the file that is trained on
    in_memory: int  # and of the one that is read before


FULL = Sizes(large=10**9, kinds=2 * 10**7, repeats=7, trained=5 * 10**9, in_memory=5 * 10**8)
QUICK = Sizes(large=5 * 10**7, kinds=4 * 10**6, repeats=3, trained=2 * 10**8, in_memory=10**8)


@dataclass(frozen=True)
class Kind:
    """What the rows of a generated file are like."""

    name: str
    columns: int
    entries: int  # of a row, on average
    write: Callable[[float], str]


UNPACK: dict[str, Callable] = {".xz": lzma.open, ".bz2": bz2.open}

LARGE = Kind("numbers of 6 digits, 40 a row", 10_000, 40, "{:.6g}".format)
TRAINED = Kind("numbers of 6 digits, 12 a row", 100, 12, "{:.6g}".format)
KINDS = (
    Kind("ones, 14 a row", 123, 14, "{:.0f}".format),
    Kind("numbers of 6 digits, 2 a row", 1000, 2, "{:.6g}".format),
    Kind("16 digits, as scikit-learn writes them, 20 a row", 1000, 20, "{:.16g}".format),
    Kind("17 digits, 20 a row", 1000, 20, repr),
    Kind("25 digits, 20 a row", 1000, 20, "{:.24e}".format),
)


class Bench:
    """The parts of the table; each yields its rows."""

    def __init__(self, directory, sizes, clock):
        self.directory, self.sizes, self.clock = directory, sizes, clock

    def compare(self, part, work, path, at_least=None):
        """Both on the same file, in turns."""
        check_same(read_svmlight(path), load_svmlight_file(path))
        times = interleave(
            {"ours": lambda: read_svmlight(path), "peer": lambda: load_svmlight_file(path)},
            repeats=self.sizes.repeats,
            clock=self.clock,
        )
        yield self.row(part, work, os.path.getsize(path), times["ours"], times["peer"], at_least)

    def row(self, part, work, n_bytes, ours, peer, at_least):
        return Row(
            part, work, "load_svmlight_file", "MB/s", n_bytes / ours / 1e6, n_bytes / peer / 1e6, peer / ours,
            at_least=at_least,
        )  # fmt: skip

    def adult(self):
        """a: Adult, from a plain file."""
        found = data.find("adult", *data.SOURCES["adult"].files, self.directory)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "adult")
            with UNPACK.get(found.suffix, open)(found, "rb") as packed, open(path, "wb") as file:
                shutil.copyfileobj(packed, file)
            yield from self.compare("a", "Adult", path, at_least=5)

    def large(self):
        """b: a generated file of 1 GB (--quick: 50 MB): at once, in batches of 16 MB, and the memory it takes."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "large")
            generate(path, LARGE, self.sizes.large)
            n_bytes = os.path.getsize(path)
            work = f"{n_bytes / 1e6:.0f} MB, {LARGE.name}"
            before = _forget_peak()
            ours, seconds = self.once(lambda: read_svmlight(path))
            peak = None if before is None else (_resident("VmHWM") - before) / 1e6
            theirs, peer = self.once(lambda: load_svmlight_file(path))
            check_same(ours, theirs)
            X, y = ours
            size = sum(array.nbytes for array in (X.data, X.indices, X.indptr, y)) / 1e6
            del ours, theirs, X, y
            seconds = min(seconds, *(self.once(lambda: read_svmlight(path))[1] for _ in range(2)))
            yield self.row("b", work, n_bytes, seconds, peer, at_least=5)

            def go_through():
                for _ in iter_svmlight(path, n_features=LARGE.columns, zero_based=False):
                    pass

            seconds = min(self.once(go_through)[1] for _ in range(3))
            yield self.row("b", f"{work}, batches", n_bytes, seconds, peer, at_least=5)
            if peak is not None:
                yield Row("b", f"{work}, peak memory", "the result", "MB", peak, size, peak - size, " MB")

    def kinds(self):
        """c: files of other kinds."""
        with tempfile.TemporaryDirectory() as directory:
            for kind in KINDS:
                path = os.path.join(directory, "file")
                generate(path, kind, self.sizes.kinds)
                yield from self.compare("c", kind.name, path)

    def trained(self):
        """d: one epoch of AdaGrad, degree 3, over a file of 5 GB (--quick: 200 MB), and over rows in memory."""
        with tempfile.TemporaryDirectory() as directory:
            free = shutil.disk_usage(directory).free
            if free < 2 * self.sizes.trained:
                raise data.MissingData(
                    f"{directory} has {free / 1e9:.1f} GB free; part d writes {self.sizes.trained / 1e9} GB"
                )
            path = os.path.join(directory, "file")
            generate(path, TRAINED, self.sizes.in_memory)
            memory = epoch.measure(path, TRAINED.columns, memory=True)
            generate(path, TRAINED, self.sizes.trained)
            n_bytes = os.path.getsize(path)
            file = epoch.measure(path, TRAINED.columns)
        work = f"{n_bytes / 1e6:.0f} MB, {TRAINED.name}"
        rate = file["rows"] / file["stream"] / 1e6
        for peer_name, name, at_least in (("fit, an epoch", "fit", 60), ("fit_stream, in memory", "stream", None)):
            peer = memory["rows"] / memory[name] / 1e6
            share = 100 * rate / peer
            yield Row("d", f"{work}, epoch", peer_name, "M rows/s", rate, peer, share, " %", at_least=at_least)
        peak = file["peak"] / 1e6
        yield Row("d", f"{work}, peak memory", "", "MB", peak, None, peak, " MB", at_most=1000)
        yield Row("d", f"{work}, waiting for rows", "", "%", 100 * file["waiting"], None, 100 * file["waiting"], " %")

    def once(self, work):
        """(what it returns, its seconds)."""
        clock = CLOCKS[self.clock]
        gc.collect()
        begin = clock()
        result = work()
        return result, clock() - begin


PARTS = {"a": Bench.adult, "b": Bench.large, "c": Bench.kinds, "d": Bench.trained}


def generate(path, kind, n_bytes, seed=0):
    """Write rows of normal numbers, 2000 different ones again and again, each time in another order."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(2000):
        n = min(rng.poisson(kind.entries), kind.columns)
        columns = np.sort(rng.choice(kind.columns, n, replace=False)) + 1
        pairs = [f"{j}:{kind.write(x)}" for j, x in zip(columns, rng.standard_normal(n).tolist(), strict=True)]
        lines.append(" ".join([rng.choice(["+1", "-1"]), *pairs]) + "\n")
    with open(path, "w") as file:
        while file.tell() < n_bytes:
            file.write("".join(lines[i] for i in rng.permutation(len(lines))))


def check_same(ours, theirs):
    """Refuse to time what is not equal."""
    (X, y), (X2, y2) = ours, theirs
    same = X.shape == X2.shape and np.array_equal(X.data.view(np.int64), X2.data.view(np.int64))
    if not (same and np.array_equal(X.indices, X2.indices) and np.array_equal(X.indptr, X2.indptr)):
        raise AssertionError("the rows are not the same")
    if not np.array_equal(y, y2):
        raise AssertionError("the labels are not the same")


def main(arguments=None):
    run("bench.stream", __doc__, PARTS, Bench, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
