"""The data sets of the benchmarks, parsed once and kept in a cache in the temporary directory.

Their files are not part of the project: `load` says where each comes from when it is missing. README.md in this
folder tells how each set is scaled.
"""

import getpass
import gzip
import lzma
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

from . import timit

ENVIRONMENT = "TAYLORKERN_DATA"
CACHE_VERSION = 1  # raise when a parser changes what it returns


class Data(NamedTuple):
    """A data set; y is None where there are no labels."""

    X: sparse.csr_matrix | np.ndarray
    y: np.ndarray | None


class Source(NamedTuple):
    """Where a data set comes from: its files, who has them, and how they are read."""

    files: tuple[str, ...]
    origin: str
    # None for a table of words and numbers, which pandas reads.
    parse: Callable[..., tuple[sparse.csr_matrix | np.ndarray, np.ndarray]] | None


class MissingData(Exception):
    """A file of a data set is not there."""


def parse_svmlight(path, n_features):
    """A file of LIBSVM's data page: plain, .xz or .bz2. Test files may lack the last columns, hence n_features."""
    with lzma.open(path) if path.suffix == ".xz" else nullcontext(os.fspath(path)) as file:
        return load_svmlight_file(file, n_features=n_features, zero_based=False)


def parse_pendigits(path):
    """Pen digits: coordinates from 0 to 100, divided by 100."""
    X, y = parse_svmlight(path, 16)
    X.data /= 100
    return X, y


def parse_news20(path):
    """News20: counts of words, each row scaled to length 1."""
    X, y = parse_svmlight(path, 62061)
    return normalize(X), y


def parse_covertype(path):
    """Covertype: ten numbers, each divided by its largest magnitude (zeros stay zero), and 44 columns of 0/1."""
    table = np.loadtxt(path, delimiter=",", dtype=np.float64)
    X, y = table[:, :54], table[:, 54]
    X[:, :10] /= np.abs(X[:, :10]).max(axis=0)
    return sparse.csr_matrix(X), y


def parse_dry_bean(path):
    """Dry beans: sixteen numbers of very unequal scales, the label is the last column."""
    table = parse_csv(path)
    return table[:, :-1].astype(np.float64), table[:, -1]


def parse_protein(path):
    """Protein structures: nine numbers of very unequal scales, the last column is to be predicted."""
    table = parse_csv(path).astype(np.float64)
    return table[:, :-1], table[:, -1]


def parse_csv(path):
    """The cells of a table with one line of names above."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else open(path) as file:
        return np.loadtxt(file, dtype=str, delimiter=",", skiprows=1)


def parse_mnist(images, labels):
    """MNIST: grey levels divided by 255, labels 0 to 9."""
    with gzip.open(images) as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(-1, 28 * 28)
    with gzip.open(labels) as file:
        y = np.frombuffer(file.read(), dtype=np.uint8, offset=8)
    X = sparse.csr_matrix(pixels).astype(np.float64)
    X.data /= 255
    return X, y.astype(np.float64)


def parse_timit(path):
    """TIMIT, the training speakers: dense float32, labels are phonemes."""
    return timit.split(path)[:2]


def parse_timit_test(path):
    """TIMIT, the other speakers."""
    return timit.split(path)[2:]


parse_adult = partial(parse_svmlight, n_features=123)  # columns of 0 and 1, labels -1 and 1
parse_letter = partial(parse_svmlight, n_features=16)
parse_dna = partial(parse_svmlight, n_features=180)
parse_ijcnn1 = partial(parse_svmlight, n_features=22)  # labels -1 and 1
parse_mushrooms = partial(parse_svmlight, n_features=112)
parse_abalone = partial(parse_svmlight, n_features=8)

SOURCES = {
    "adult": Source(("a9a",), "LIBSVM's data page, binary classification, a9a", parse_adult),
    "adult-test": Source(("a9a.t",), "LIBSVM's data page, binary classification, a9a (testing)", parse_adult),
    "adult-table": Source(("adult.train.csv", "adult.test.csv"), "the UCI repository, Adult, with names", None),
    "letter": Source(("letter.scale",), "LIBSVM's data page, multi-class, letter", parse_letter),
    "letter-test": Source(("letter.scale.t",), "LIBSVM's data page, multi-class, letter (testing)", parse_letter),
    "pendigits": Source(("pendigits",), "LIBSVM's data page, multi-class, pendigits", parse_pendigits),
    "pendigits-test": Source(("pendigits.t",), "LIBSVM's data page, multi-class, pendigits (testing)", parse_pendigits),
    "dna": Source(("dna.scale",), "LIBSVM's data page, multi-class, dna", parse_dna),
    "dna-test": Source(("dna.scale.t",), "LIBSVM's data page, multi-class, dna (testing)", parse_dna),
    "news20": Source(("news20",), "LIBSVM's data page, multi-class, news20", parse_news20),
    "ijcnn1": Source(("ijcnn1",), "LIBSVM's data page, binary classification, ijcnn1", parse_ijcnn1),
    "ijcnn1-test": Source(("ijcnn1.t",), "LIBSVM's data page, binary classification, ijcnn1 (testing)", parse_ijcnn1),
    "abalone": Source(("abalone_scale",), "LIBSVM's data page, regression, abalone", parse_abalone),
    "mushrooms": Source(("mushrooms",), "LIBSVM's data page, binary classification, mushrooms", parse_mushrooms),
    "dry-bean": Source(("dry-bean.csv",), "the UCI repository, Dry Bean", parse_dry_bean),
    "protein": Source(
        ("protein-casp.csv",),
        "the UCI repository, Physicochemical Properties of Protein Tertiary Structure",
        parse_protein,
    ),
    "covertype": Source(("covtype.data.gz",), "the UCI repository, Covertype", parse_covertype),
    "mnist": Source(
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"), "the MNIST database, training set", parse_mnist
    ),
    "mnist-test": Source(
        ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"), "the MNIST database, test set", parse_mnist
    ),
    "timit": Source(("timit.zip",), "NLTK's data, timit", parse_timit),
    "timit-test": Source(("timit.zip",), "NLTK's data, timit", parse_timit_test),
}


def synthetic_speech(n_rows=65536, seed=0):
    """Dense float32 rows of 39 normal numbers: the shape of speech frames (MFCC with two differences)."""
    return np.random.default_rng(seed).standard_normal((n_rows, 39), dtype=np.float32)


def load(name, directory):
    """A data set by its name: those of SOURCES (CSR, float64; TIMIT dense, float32), or "speech" (made up, the same).

    The order of the rows is that of the file. Raises `MissingData` with the file and its public origin.
    """
    if name == "speech":
        return Data(synthetic_speech(), None)
    source = SOURCES[name]
    paths = [find(name, file, directory) for file in source.files]
    cached = _cache_directory() / f"{name}-{_key(paths)}.npz"
    if cached.exists():
        with np.load(cached) as saved:
            if "X" in saved:
                return Data(saved["X"], saved["y"])
            parts = saved["data"], saved["indices"], saved["indptr"]
            return Data(sparse.csr_matrix(parts, shape=saved["shape"]), saved["y"])
    X, y = source.parse(*paths)
    if isinstance(X, np.ndarray):
        _save(cached, X=X, y=y)
    else:
        _save(cached, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=y)
    return Data(X, y)


def covertype_split(directory):
    """Covertype, class 1 against the rest: (training rows, labels, test rows, labels), 522911 and 58101 of them.

    The ten numeric columns have mean 0 and variance 1, then all of it is scaled to unit average squared norm.
    """
    X, y = load("covertype", directory)
    X = X.toarray()
    X[:, :10] = (X[:, :10] - X[:, :10].mean(axis=0)) / X[:, :10].std(axis=0)
    X /= np.sqrt((X**2).sum(axis=1).mean())
    y = np.where(y == 1, 1, -1)
    order = np.random.RandomState(0).permutation(len(y))
    train, test = order[:522911], order[522911:]
    return sparse.csr_matrix(X[train]), y[train], sparse.csr_matrix(X[test]), y[test]


def timit_split(directory):
    """TIMIT's frames by speaker: (training rows, labels, test rows, labels)."""
    return *load("timit", directory), *load("timit-test", directory)


def mnist_shift(X):
    """For MNIST: the mean of each pixel that is not zero in more than three of ten images."""
    filled = np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]
    return np.where(filled > 0.3, np.asarray(X.mean(axis=0)).ravel(), 0.0)


def sample(X, n_rows, *, again=False, seed=0):
    """n_rows rows, drawn without replacement, in random order: the sets' own orders are not random.

    When X has fewer, all of them come once, or, with `again`, as often as it takes.
    """
    order = np.random.RandomState(seed).permutation(X.shape[0])
    return X[np.resize(order, n_rows) if again else order[:n_rows]]


def find(name, file, directory):
    """The path of a file of a data set, plain or packed, in the directory or one of its folders."""
    origin = f"{name} needs the file {file} ({SOURCES[name].origin})"
    if not directory:
        raise MissingData(f"{origin}: name its directory by --data DIR or ${ENVIRONMENT}")
    for folder in ("", "extra", "tables"):
        for ending in ("", ".xz", ".bz2"):
            path = Path(directory) / folder / (file + ending)
            if path.is_file():
                return path
    raise MissingData(f"{origin}, which is not in {directory}")


def remember(name, key, work):
    """The numbers that `work` returns, a dictionary by name; from the cache where it was done for an equal key."""
    cached = _cache_directory() / f"{name}-{sha256(repr(key).encode()).hexdigest()[:16]}.npz"
    if not cached.exists():
        _save(cached, **work())
    with np.load(cached) as saved:
        return {field: saved[field].item() for field in saved}


def fingerprint(X):
    """A word that changes with the content of an array or a CSR matrix."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    found = sha256(repr((X.shape, [part.dtype.str for part in parts])).encode())
    for part in parts:
        found.update(np.ascontiguousarray(part))
    return found.hexdigest()


def add_argument(parser):
    """The option --data of every benchmark that reads data sets."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=os.environ.get(ENVIRONMENT),
        help=f"the directory of the data sets (default: ${ENVIRONMENT})",
    )


def _key(paths):
    """Changes with the files and with the parsers."""
    states = [(os.path.abspath(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return sha256(repr((CACHE_VERSION, states)).encode()).hexdigest()[:16]


def _cache_directory():
    """A directory of this user alone."""
    who = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    directory = Path(tempfile.gettempdir()) / f"taylorkern-bench-{who}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and directory.stat().st_uid != who:
        raise PermissionError(f"{directory} belongs to another user")
    return directory


def _save(path, **arrays):
    """Whole or not at all, also when two runs save at once."""
    handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
