"""The sets on which `bench.parity` compares models: made ones, scikit-learn's, and files prepared as a user would.

What a pipeline does before the model (scaling, one-hot columns) is done here, learned from the training rows alone, so
that only the model is timed. Made sets, and files without test rows of their own, are drawn with a fixed seed.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from . import data


class Sizes(NamedTuple):
    """How many rows there are of each set, at most."""

    rows: int  # for training
    test_rows: int


class Split(NamedTuple):
    """Rows for training and for testing."""

    X: sparse.csr_matrix | np.ndarray
    y: np.ndarray
    X_test: sparse.csr_matrix | np.ndarray
    y_test: np.ndarray


class Table(NamedTuple):
    """A set: its splits, made from the directory of the data and `Sizes`; scores are means over them."""

    splits: Callable[[str | None, Sizes], list[Split]]
    gamma: float | None = None  # where SVC's default fits badly
    regression: bool = False


# How rows are divided and scaled.


def split(X, y, sizes, seed=0):
    """A random third of the rows is for testing."""
    order = np.random.RandomState(seed).permutation(len(y))
    n_test = len(y) // 3
    test, train = order[: min(n_test, sizes.test_rows)], order[n_test:][: sizes.rows]
    return Split(X[train], y[train], X[test], y[test])


def standardised(rows):
    """Each column with mean 0 and variance 1, of the training rows."""
    scaler = StandardScaler().fit(rows.X)
    return rows._replace(X=scaler.transform(rows.X), X_test=scaler.transform(rows.X_test))


def made(make, rows, directory, sizes):
    """A set of make(number of rows): these rows for training, and as many for testing as there may be."""
    n_train = min(rows, sizes.rows)
    X, y = make(n_train + sizes.test_rows)
    return [Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])]


def shipped(load, scale, times, directory, sizes):
    """A small set of scikit-learn's: several splits, since one test row of few is more than half a point."""
    X, y = load(return_X_y=True)
    return [scale(split(X, y, sizes, seed)) for seed in range(times)]


def whole(name, scale, rows, directory, sizes):
    """A file without test rows of its own."""
    X, y = data.load(name, directory)
    return [scale(split(X, y, sizes._replace(rows=min(rows, sizes.rows))))]


def with_test(name, rows, directory, sizes):
    """A file whose test rows are a file, too."""
    (X, y), (X_test, y_test) = (data.load(each, directory) for each in (name, f"{name}-test"))
    n_train, n_test = min(rows, sizes.rows, len(y)), min(sizes.test_rows, len(y_test))
    return [Split(*(data.sample(a, n) for a, n in ((X, n_train), (y, n_train), (X_test, n_test), (y_test, n_test))))]


def as_given(rows):
    """Rows that are not scaled."""
    return rows


# Sets that need more than that.


def dense(rows):
    """The covertypes' columns, standardised, as numpy has them."""
    return standardised(rows._replace(X=rows.X.toarray(), X_test=rows.X_test.toarray()))


def standard_target(rows):
    """Columns and target standardised."""
    mean, deviation = rows.y.mean(), rows.y.std()
    return standardised(rows._replace(y=(rows.y - mean) / deviation, y_test=(rows.y_test - mean) / deviation))


def adult_table(directory, sizes):
    """The people of Adult as a table, through a ColumnTransformer: sparse rows of one-hot and standardised columns."""
    import pandas as pd

    tables = [
        pd.read_csv(data.find("adult-table", file, directory), keep_default_na=False)
        for file in data.SOURCES["adult-table"].files
    ]
    train, test = (table.sample(frac=1, random_state=0) for table in tables)
    train, test = train[: sizes.rows], test[: sizes.test_rows]
    columns = train.drop(columns="income")
    words = columns.select_dtypes(exclude="number").columns
    prepare = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), words)], remainder=StandardScaler(), sparse_threshold=1.0
    )
    y, y_test = (table["income"].to_numpy(dtype=str) for table in (train, test))
    return [Split(prepare.fit_transform(columns), y, prepare.transform(test[columns.columns]), y_test)]


def checkerboard(squares, width, n_rows):
    """A square of this width about the origin, divided into squares x squares of two classes."""
    X = np.random.RandomState(0).uniform(-width / 2, width / 2, (n_rows, 2))
    return X, np.floor((X / width + 0.5) * squares).astype(int).sum(axis=1) % 2


def sign4(n_rows):
    """The sign of the product of four numbers."""
    X = np.random.RandomState(0).uniform(-1, 1, (n_rows, 4))
    return X, np.sign(X.prod(axis=1)).astype(int)


def spiral(n_rows):
    """Two spirals of one and a half turns."""
    random = np.random.RandomState(0)
    radius, y = np.sqrt(random.uniform(0.01, 1, n_rows)), random.randint(0, 2, n_rows)
    angle = 3 * np.pi * radius + np.pi * y
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X + 0.02 * random.standard_normal((n_rows, 2)), y


def heavy_tails(n_rows):
    """Columns in which some values are very far away, of which gamma="scale" takes account, and two that matter."""
    X = np.random.RandomState(0).standard_t(2.5, (n_rows, 5))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def wave(n_rows):
    """A sine of one number, for regression."""
    random = np.random.RandomState(0)
    X = random.uniform(-4, 4, (n_rows, 1))
    return X, np.sin(3 * X[:, 0]) + 0.1 * random.standard_normal(n_rows)


def rare_classes(n_rows, n_classes=23, n_numbers=38, words=(3, 60, 20)):
    """121 columns, mostly one-hot, in 23 classes, three of which have 98 % of the rows and the least one in 20,000.

    Rows are variations of few prototypes, as a network's connections are: the large classes repeat theirs, one is
    manifold, and the rare ones differ from a row of that one in three or four columns.
    """
    random = np.random.RandomState(0)
    shares = np.concatenate([[0.57, 0.22, 0.19], np.geomspace(6e-3, 5e-5, n_classes - 3)])
    y = random.choice(n_classes, n_rows, p=shares / shares.sum())
    codes, numbers, first = [], [], []
    for k in range(n_classes):
        n = {0: 3, 1: 30, 2: 600}.get(k, 4)
        first.append(len(codes))
        if k < 3:
            code = np.column_stack([(w * random.uniform(0, 1, n) ** 2).astype(int) for w in words])
            number = random.uniform(0, 1, (n, n_numbers)) * (random.uniform(0, 1, (n, n_numbers)) < 0.25)
        else:
            like = first[2] + random.randint(0, 600, n)
            code, number = np.array(codes)[like], np.array(numbers)[like]
            code[:, 1] = random.randint(0, words[1])
            number[:, random.randint(0, n_numbers, 2)] = 1
        codes.extend(code)
        numbers.extend(number)
    ends = np.append(first[1:], len(codes))
    which = np.array(first)[y] + (random.uniform(0, 1, n_rows) ** 2 * (ends - first)[y]).astype(int)
    values = np.array(numbers)[which]
    values = np.where((values > 0) & (random.uniform(0, 1, values.shape) < 0.2), values.round(1), values)
    values += 0.02 * (values > 0) * random.randint(-1, 2, values.shape) * (random.uniform(0, 1, (n_rows, 1)) < 0.5)
    hot = [np.eye(w)[code] for w, code in zip(words, np.array(codes)[which].T, strict=True)]
    return sparse.csr_matrix(np.hstack([*hot, values.clip(0, 1)])), y


TABLES = {
    "blobs": Table(
        partial(made, partial(datasets.make_blobs, centers=5, center_box=(-20, 20), random_state=6), 2000), gamma=0.1
    ),
    "circles": Table(
        partial(made, partial(datasets.make_circles, noise=0.15, factor=0.5, random_state=0), 2000), gamma=2.0
    ),
    "moons": Table(partial(made, partial(datasets.make_moons, noise=0.15, random_state=0), 2000), gamma=25.0),
    "board-4x4": Table(partial(made, partial(checkerboard, 4, 2), 5000)),
    "board-4x4-g5": Table(partial(made, partial(checkerboard, 4, 2), 5000), gamma=5.0),
    "board-8x8-g5": Table(partial(made, partial(checkerboard, 8, 8), 5000), gamma=5.0),
    "sign4": Table(partial(made, sign4, 5000)),
    "spiral": Table(partial(made, spiral, 2000)),
    "heavy-tails": Table(partial(made, heavy_tails, 5000)),
    "rare-classes": Table(partial(made, rare_classes, 20000)),
    "digits": Table(partial(shipped, datasets.load_digits, as_given, 3)),
    "wine": Table(partial(shipped, datasets.load_wine, standardised, 20)),
    "wine-raw": Table(partial(shipped, datasets.load_wine, as_given, 20)),
    "breast-cancer": Table(partial(shipped, datasets.load_breast_cancer, standardised, 10)),
    "letter": Table(partial(with_test, "letter", 15000)),
    "pendigits": Table(partial(with_test, "pendigits", 10000)),
    "ijcnn1": Table(partial(with_test, "ijcnn1", 20000)),
    "dna": Table(partial(with_test, "dna", 2000)),
    "mushrooms": Table(partial(whole, "mushrooms", as_given, 5000)),
    "dry-bean": Table(partial(whole, "dry-bean", standardised, 10000)),
    "dry-bean-raw": Table(partial(whole, "dry-bean", as_given, 10000)),
    "adult": Table(partial(with_test, "adult", 20000)),
    "adult-table": Table(adult_table),
    "covtype": Table(partial(whole, "covertype", dense, 20000)),
    "mnist": Table(partial(with_test, "mnist", 8000)),
    "timit": Table(partial(with_test, "timit", 10000)),
    "news20": Table(partial(whole, "news20", as_given, 5000)),
    "protein": Table(partial(whole, "protein", standard_target, 20000), regression=True),
    "abalone": Table(partial(whole, "abalone", as_given, 3000), regression=True),
    "diabetes": Table(partial(shipped, datasets.load_diabetes, standardised, 10), regression=True),
    "wave": Table(partial(made, wave, 1000), gamma=2.0, regression=True),
    "friedman1": Table(
        partial(made, partial(datasets.make_friedman1, noise=0.5, random_state=0), 3000), regression=True
    ),
}
