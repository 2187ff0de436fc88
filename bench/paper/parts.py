"""Which results each part of the page is made of, in a full and in a quick run."""

from dataclasses import dataclass
from itertools import product

from .sets import NARROW, SCALINGS, TABLE1, TABLE2

MNIST_EPOCHS = 8
SWEPT = 4  # the degree of the sweep over sigma^2
UNIT = {"normalize": True}  # unit rows; a job that does not name them is the paper's, whose rows are not
PAIRS_FOURIER = 1024  # random features of pairs, at most: their error falls by the square root of their number


@dataclass(frozen=True)
class Sizes:
    """How much work is done."""

    quick: bool
    rows: dict  # training rows of the curves, by set; None: all
    degrees: dict  # of the curves, by set
    fourier: dict  # the largest number of random Fourier features of the curves, by set
    narrow: tuple  # the sets whose curves are also drawn in the narrow reading of sigma
    whole: dict  # training rows of the tables, by set; None: all
    exact: dict  # training rows of the exact kernel in the tables, by set
    scalings: tuple  # of Cov1, that are tried
    searched: tuple  # training rows of the exact kernel in the search for Cov1's scaling
    searched_taylor: int  # and of Taylor features there
    sweep: int  # training rows of the sweep over sigma^2
    sigma2: tuple  # its values
    test: dict  # test rows of the curves and of the exact kernel, by set; None: all
    pairs: int
    phonemes: int | None  # training frames of the 39 classes
    synthetic: int
    grid: dict  # factors of C and of sigma^2 around the paper's in Table 2, by set
    polynomial: dict  # factors of C for the polynomial kernel


ALL = dict.fromkeys(TABLE1)
FULL = Sizes(
    quick=False,
    rows=ALL | {"mnist": 10_000, "cov1": 50_000},
    degrees={"adult": (2, 3, 4), "mnist": (2, 3), "timit": (2, 3, 4), "cov1": (2, 3, 4, 5)},
    fourier={"adult": 2048, "mnist": 8192, "timit": 4096, "cov1": 2048},
    narrow=("adult", "timit"),
    whole=ALL,
    exact=ALL | {"cov1": 50_000},
    scalings=SCALINGS,
    searched=(5000, 10_000, 20_000),
    searched_taylor=100_000,
    sweep=20_000,
    sigma2=(1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0),
    test=ALL | {"cov1": 20_000},
    pairs=100_000,
    phonemes=None,
    synthetic=1_100_000,
    grid={
        "adult": (1 / 4, 1 / 2, 1, 2),
        "timit": (1 / 4, 1 / 2, 1, 2, 4),
        "mnist": (1 / 16, 1 / 4, 1),
        "cov1": (1 / 4, 1, 4),
    },
    polynomial={
        "adult": (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1),
        "timit": (1 / 64, 1 / 16, 1 / 4, 1),
        "mnist": (1 / 16, 1 / 4, 1),
        "cov1": (1 / 4, 1),
    },
)
QUICK = Sizes(
    quick=True,
    rows={"adult": 6000, "mnist": 1000, "timit": None, "cov1": 6000},
    degrees={"adult": (2, 3, 4), "mnist": (2, 3), "timit": (2, 3), "cov1": (2, 3, 4)},
    fourier={"adult": 1024, "mnist": 4096, "timit": 1024, "cov1": 512},
    narrow=("adult", "timit"),
    whole={"adult": 6000, "mnist": 3000, "timit": None, "cov1": 20_000},
    exact={"adult": 6000, "mnist": 3000, "timit": None, "cov1": 6000},
    scalings=("standard, unit", "range, unit"),
    searched=(1000, 2000),
    searched_taylor=5000,
    sweep=2000,
    sigma2=(1 / 32, 1 / 8, 1 / 2, 2.0),
    test={"adult": None, "mnist": 500, "timit": None, "cov1": 5000},
    pairs=5000,
    phonemes=4000,
    synthetic=20_000,
    grid=dict.fromkeys(TABLE1, (1,)),
    polynomial=dict.fromkeys(TABLE1, (1 / 64,)),
)


def table1(sizes):
    """Sizes of the sets; test errors of the exact kernel and of the linear SVM; scalings of Cov1."""
    for name, paper in TABLE1.items():
        yield {"work": "sizes", "set": name}
        for sigma2 in (paper.sigma2, paper.sigma2 / NARROW):
            yield exact(sizes, name, paper.C, sigma2, rows=sizes.exact[name])
        yield {"work": "linear", "set": name, "C": paper.linear_C, "rows": sizes.whole[name]}
    digits = {"work": "linear", "set": "mnist", "C": TABLE1["mnist"].linear_C, "rows": sizes.whole["mnist"]}
    yield digits | {"max_iter": 100}
    paper = TABLE1["cov1"]
    for scaling in sizes.scalings:
        yield {"work": "linear", "set": "cov1", "C": paper.linear_C, "rows": sizes.exact["cov1"], "scaling": scaling}
        for sigma2, rows in product((paper.sigma2, paper.sigma2 / NARROW), sizes.searched):
            yield exact(sizes, "cov1", paper.C, sigma2, rows=rows) | {"scaling": scaling}
        if not scaling.startswith("all"):  # which fills rows: 54 nonzeros
            for by in (1, NARROW):
                best = TABLE2["cov1"]
                model = large(sizes, "cov1", best.taylor_C, best.degree, sigma2=best.taylor_sigma2 / by)
                yield model | {"rows": sizes.searched_taylor, "shift": None, "scaling": scaling}


def figure1(sizes):
    """Curves of Adult, MNIST and TIMIT."""
    for name in ("adult", "mnist", "timit"):
        yield from curves(sizes, name)
    for name in sizes.narrow:
        yield from curves(sizes, name, TABLE1[name].sigma2 / NARROW)
    for seed in (1, 2):  # whether MNIST's exception is a matter of the seed
        digits, n_components = TABLE1["mnist"], sizes.fourier["mnist"] // 2
        again = fourier(sizes, "mnist", digits.C, digits.sigma2, n_components, rows=sizes.rows["mnist"])
        yield again | {"seed": seed}


def figure2(sizes):
    """Curves of Cov1; errors of the kernel; the sweep over sigma^2."""
    yield from curves(sizes, "cov1")
    sigma2 = TABLE1["cov1"].sigma2
    for degree in sizes.degrees["cov1"]:
        yield {"work": "pairs", "set": "cov1", "sigma2": sigma2, "pairs": sizes.pairs, "degree": degree}
    for n_components in powers(sizes, "cov1"):
        yield {"work": "pairs", "set": "cov1", "sigma2": sigma2, "pairs": sizes.pairs, "n_components": n_components}
    yield from bandwidths(sizes)


def table2(sizes):
    """The best of coarse grids: Gaussian, Taylor and polynomial kernel."""
    for name, paper in TABLE2.items():
        factors = sizes.grid[name]
        for by_C, by_sigma2 in exact_grid(name, factors):
            yield exact(sizes, name, paper.C * by_C, paper.sigma2 * by_sigma2, rows=sizes.exact[name])
        for by_C, by_sigma2 in taylor_grid(name, factors):
            yield large(sizes, name, paper.taylor_C * by_C, paper.degree, sigma2=paper.taylor_sigma2 * by_sigma2)
        for by_C in sizes.polynomial[name]:
            yield large(sizes, name, paper.polynomial_C * by_C, paper.degree, unit=True)


def exact_grid(name, factors):
    """The exact kernel is dear: where the set is large, the paper's values only, read in both ways."""
    if name == "timit":
        return cross(factors)
    return [(1, 1)] if name == "cov1" else [(1, 1), (1, 1 / NARROW)]


def taylor_grid(name, factors):
    """All pairs where the set is small."""
    return product(factors, factors) if name in ("adult", "timit") else cross(factors)


def cross(factors):
    """(factor of C, factor of sigma^2): one of them at a time, or both the paper's."""
    return [(1, 1)] + [(a, 1) for a in factors if a != 1] + [(1, a) for a in factors if a != 1]


def large(sizes, name, C, degree, **settings):
    """A model of Table 2: adagrad where C is large."""
    rows = sizes.whole[name]
    if name == "mnist":
        settings |= {"solver": "adagrad", "max_iter": MNIST_EPOCHS, "tol": 1e-9}
    elif name == "cov1":
        settings |= {"solver": "adagrad", "max_iter": 8, "tol": 1e-9}
    else:
        settings |= {"tol": 1e-3 if "sigma2" in settings else 0.01, "max_iter": 200}
    return {"work": "taylor", "set": name, "rows": rows, "C": C, "degree": degree, "shift": "auto", **settings}


def timit(sizes):
    """39 phonemes by frame, on the sample; and our training on as many rows as the paper had."""
    yield {"work": "phonemes", "set": "timit", "kernel": "exact", "rows": sizes.phonemes}
    yield {"work": "phonemes", "set": "timit", "kernel": "taylor", "rows": sizes.phonemes}
    yield {"work": "synthetic", "set": "timit", "rows": sizes.synthetic}


def theory(sizes):
    """Bounds at the degrees of the curves; the models of the curves, with their certificates; errors of pairs."""
    for name, paper in TABLE1.items():
        rows = sizes.rows[name]
        for degree in sizes.degrees[name]:
            bounds = {"work": "bounds", "set": name, "degree": degree, "C": paper.C, "sigma2": paper.sigma2}
            yield bounds | {"pairs": sizes.pairs, "rows": rows}
            pairs = {"work": "pairs", "set": name, "sigma2": paper.sigma2, "pairs": sizes.pairs, "rows": rows}
            yield pairs | {"degree": degree}
            yield taylor(sizes, name, paper.C, paper.sigma2, degree, rows=rows)
            if (name, degree) != ("mnist", 3):  # whose shift fills rows: minutes
                yield taylor(sizes, name, paper.C, paper.sigma2, degree, rows=rows, shift="auto")
        for n_components in powers(sizes, name):
            if n_components <= PAIRS_FOURIER:
                yield pairs | {"n_components": n_components}
        yield exact(sizes, name, paper.C, paper.sigma2, rows=rows)


def beyond(sizes):
    """What the package adds, on the axes of the figures; each of it also with unit rows, but for adagrad's curves."""
    for name, paper in TABLE1.items():
        rows = sizes.rows[name]
        yield from curves(sizes, name)
        for degree in sizes.degrees[name]:
            if (name, degree) != ("mnist", 3):
                adagrad = {"solver": "adagrad", "max_iter": 16, "tol": 1e-3}
                yield taylor(sizes, name, paper.C, paper.sigma2, degree, rows=rows, shift="auto")
                yield taylor(sizes, name, paper.C, paper.sigma2, degree, rows=rows, shift="auto", **adagrad)
                yield taylor(sizes, name, paper.C, paper.sigma2, degree, rows=rows, shift="auto", **UNIT)
    paper = TABLE1["mnist"]
    for n_axes, rows in product((20, 40, 80), ({}, UNIT)):
        axes = {"shift": "auto", "n_axes": n_axes} | rows
        yield taylor(sizes, "mnist", paper.C, paper.sigma2, 3, rows=sizes.rows["mnist"], **axes)
    paper = TABLE1["cov1"]
    for n_cells, rows in product((4, 16, 64, 256), ({}, UNIT)):
        cells = {"shift": "auto", "n_cells": n_cells, "solver": "adagrad", "max_iter": 8, "tol": 1e-9} | rows
        yield taylor(sizes, "cov1", paper.C, paper.sigma2, 3, rows=sizes.rows["cov1"], **cells)
    adagrad = {"C": 128, "solver": "adagrad", "tol": 1e-9, "shift": "auto", "rows": sizes.whole["cov1"]}
    for settings, rows in product(
        (
            {"sigma2": 0.5, "degree": 4, "max_iter": 8},
            {"sigma2": 1 / 16, "degree": 4, "max_iter": 8},
            {"sigma2": 1 / 12, "degree": 3, "n_cells": 400, "max_iter": 4},
            {"sigma2": 0.125, "degree": 2, "n_cells": 1000, "n_partitions": 4, "max_iter": 5},
        ),
        ({}, UNIT),
    ):
        yield {"work": "taylor", "set": "cov1", **adagrad, **settings, **rows}
    yield from bandwidths(sizes)
    for sigma2 in sizes.sigma2:
        yield taylor(sizes, "cov1", paper.C, sigma2, SWEPT, rows=sizes.sweep, **UNIT)


def bandwidths(sizes):
    """Cov1: the sweep over sigma^2."""
    for sigma2 in sizes.sigma2:
        yield taylor(sizes, "cov1", TABLE1["cov1"].C, sigma2, SWEPT, rows=sizes.sweep)
        yield fourier(sizes, "cov1", TABLE1["cov1"].C, sigma2, 152, rows=sizes.sweep)  # as dear: 1820 / 12
        yield exact(sizes, "cov1", TABLE1["cov1"].C, sigma2, rows=sizes.sweep)
    yield {"work": "neighbour", "set": "cov1", "rows": sizes.sweep, "test_rows": sizes.test["cov1"]}


def curves(sizes, name, sigma2=None):
    """Taylor, random Fourier features, the exact kernel and the linear SVM on the same rows."""
    paper, rows = TABLE1[name], sizes.rows[name]
    sigma2 = sigma2 or paper.sigma2
    for degree in sizes.degrees[name]:
        yield taylor(sizes, name, paper.C, sigma2, degree, rows=rows)
    for n_components in powers(sizes, name):
        yield fourier(sizes, name, paper.C, sigma2, n_components, rows=rows)
    yield exact(sizes, name, paper.C, sigma2, rows=rows)
    yield {"work": "linear", "set": name, "C": paper.linear_C, "rows": rows}


def powers(sizes, name):
    """32, 64, ... up to the largest number of random Fourier features."""
    n_components = 32
    while n_components <= sizes.fourier[name]:
        yield n_components
        n_components *= 2


def taylor(sizes, name, C, sigma2, degree, *, rows, shift=None, **settings):
    """The paper's model where there are no more settings: rows as they are, to a small gap."""
    job = common("taylor", sizes, name, C, sigma2, rows) | {"degree": degree, "shift": shift, "tol": 1e-3}
    return job | {"max_iter": 300} | settings


def fourier(sizes, name, C, sigma2, n_components, *, rows):
    return common("fourier", sizes, name, C, sigma2, rows) | {"n_components": n_components}


def exact(sizes, name, C, sigma2, *, rows):
    return common("exact", sizes, name, C, sigma2, rows)


def common(work, sizes, name, C, sigma2, rows):
    return {"work": work, "set": name, "rows": rows, "test_rows": sizes.test[name], "C": C, "sigma2": sigma2}


PARTS = {
    "table1": table1,
    "figure1": figure1,
    "figure2": figure2,
    "table2": table2,
    "timit": timit,
    "theory": theory,
    "beyond": beyond,
}
