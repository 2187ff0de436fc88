"""Cells: the C verbs equal the reference on rows of several cells and forms; models equal the localised kernel's."""

import pickle
from dataclasses import replace
from functools import cache
from itertools import groupby, pairwise

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from taylorkern import TaylorSVC, TaylorSVR, _core, load
from taylorkern._data.expansion import Expansion
from taylorkern._data.rows import Rows
from taylorkern._place.cells import Cells, Partition, choose_cells
from taylorkern._place.shift import Moved, shift_rows
from taylorkern._train.certificate import certify, residuals_of
from taylorkern._train.loss import LABEL_LOSSES
from taylorkern._train.problem import Problem, Trained

REALS = [np.float32, np.float64]
SOLVERS = ("dual", "pegasos", "adagrad")
STORED = [("array", False), ("array", True), ("csr", False), ("csr", True)]  # and whether all columns are visited
COLUMNS = {1: 21, 2: 9, 3: 5, 5: 3}  # by degree
TOGETHER = 8  # rows of a dense walk, of one cell, whose gradients AdaGrad sums up

NORMALIZE = pytest.mark.parametrize("normalize", ["auto", False], ids=["unit", "paper"])
slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# The verbs.


class Case:
    """Rows in two forms, of three and of two cells: as C sees them, and all their features by the reference."""

    def __init__(self, how, dtype, degree, *, in_order, ordered, unit=False):
        storage, walk_dense = how
        random = np.random.default_rng(degree)
        d, n = COLUMNS[degree], 43
        self.kernel = reference.kernel_of("gaussian", degree, 0.3, unit=unit)
        self.expansion = Expansion(d, **self.kernel.parameters)
        basis, begin, forms = reference.Basis(d, degree), 0, []
        for n_cells in (3, 2):
            cell = random.integers(n_cells, size=n)
            cell = np.sort(cell) if in_order else cell
            # Walked dense, all cells have all columns; else the second one has none, and others have fewer.
            n_columns = np.full(n_cells, d) if walk_dense else np.array([d - 1, 0, d])[:n_cells]
            X = random.uniform(-1.2, 1.2, size=(n, d)) * (random.uniform(size=(n, d)) < 0.6)
            X = (X * (np.arange(d) < n_columns[cell, None])).astype(dtype)
            beyond = random.uniform(0, 2, size=n) * (random.uniform(size=n) < 0.5)
            sizes = np.array([len(reference.Basis(k, degree).multisets) for k in n_columns])
            bases = begin + np.concatenate([[0], np.cumsum(sizes)])
            begin = bases[-1]
            Phi = basis.features(X, self.kernel)
            if not unit:  # a row's own factor cancels in unit rows
                Phi *= np.exp(-0.3 * beyond)[:, None]
            forms.append((X, Phi, bases[cell], sizes[cell], beyond))
        self.n_slots, self.n, self.X = int(begin), n, np.vstack([X for X, *_ in forms])
        self.Phi = [reference.in_cells(Phi, base, sizes, self.n_slots) for _, Phi, base, sizes, _ in forms]
        self.base = [base for _, _, base, _, _ in forms]
        self.rows = following = None
        for X, _, base, _, beyond in reversed(forms):
            self.rows = Rows(sparse.csr_array(X) if storage == "csr" else X).core
            self.rows.walk_dense = walk_dense
            self.rows.set_cells(base, beyond, self.n_slots)
            if following is not None:
                self.rows.set_next(following)
            following = self.rows
        if ordered:  # some of the rows, some twice
            order = random.permutation(np.arange(2 * n) // 2)[: n + 5].astype(np.int32)
            self.rows.set_order(order)
            self.n, self.Phi = len(order), [Phi[order] for Phi in self.Phi]
            self.base = [base[order] for base in self.base]
        self.scratch = np.zeros(_core.scratch_bytes(self.rows), dtype=np.uint8)
        self.rounding = reference.rounding(self.X, self.kernel, self.n_slots)
        self.walk_dense = walk_dense


def assert_close(result, expected, size, tolerance):
    """Equal up to a part of the sum of absolute terms; exactly equal where that is zero."""
    assert np.isfinite(result).all()
    assert (np.abs(result - expected) <= tolerance * size).all()


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("in_order", [False, True], ids=["mixed", "sorted"])
@pytest.mark.parametrize("degree", COLUMNS)
@pytest.mark.parametrize("unit", [False, True], ids=["paper", "unit"])
class TestVerbs:
    def test_dot_sums_over_all_forms(self, instruction_set, dtype, how, degree, in_order, ordered, unit):
        case = Case(how, dtype, degree, in_order=in_order, ordered=ordered, unit=unit)
        Phi = sum(case.Phi)
        for width in (1, 3, 8):
            table = np.random.default_rng(width).normal(size=(case.n_slots, width)).astype(dtype)
            for first, last in [(0, case.n), (3, case.n - 1), (7, 8)]:
                out = np.full((last - first, width), np.nan, dtype=dtype)
                _core.dot(case.rows, case.expansion.features, first, last, table, out, case.scratch)
                some = Phi[first:last]
                assert_close(out, some @ table, np.abs(some) @ np.abs(table), case.rounding)

    def test_add_writes_to_the_tables_of_the_rows_cells(
        self, instruction_set, dtype, how, degree, in_order, ordered, unit
    ):
        case = Case(how, dtype, degree, in_order=in_order, ordered=ordered, unit=unit)
        Phi = sum(case.Phi)
        for width in (1, 3, 8):
            random = np.random.default_rng(width)
            before = random.normal(size=(case.n_slots, width)).astype(dtype)
            t = random.normal(size=(case.n, width)).astype(dtype)
            t[5] = 0
            for first, last in [(0, case.n), (3, case.n - 1)]:
                table, some = before.copy(), slice(first, last)
                _core.add(case.rows, case.expansion.features, first, last, table, t[some], case.scratch)
                expected = before + Phi[some].T @ t[some].astype(np.float64)
                size = np.abs(before) + np.abs(Phi[some]).T @ np.abs(t[some])
                assert_close(table, expected, size, case.rounding)
                assert np.array_equal(table[size == np.abs(before)], before[size == np.abs(before)])

    def test_adapt_steps_through_the_rows_of_each_form(
        self, instruction_set, dtype, how, degree, in_order, ordered, unit
    ):
        case = Case(how, dtype, degree, in_order=in_order, ordered=ordered, unit=unit)
        for width in (1, 3):
            random = np.random.default_rng(width)
            values = random.normal(size=(case.n_slots, width)).astype(dtype)
            squares = random.uniform(0.1, 1, size=(case.n_slots, width)).astype(dtype)
            t = random.normal(size=(case.n, width)).astype(dtype)
            new, grown = values.copy(), squares.copy()
            _core.adapt(case.rows, case.expansion.features, 0, case.n, new, grown, 0.3, t, case.scratch)
            expected, sums = values.astype(np.float64), squares.astype(np.float64)
            for Phi, base in zip(case.Phi, case.base, strict=True):
                for _, run in groupby(range(case.n), lambda i, base=base: base[i]):
                    rows = list(run)
                    together = TOGETHER if case.walk_dense else 1
                    expected, sums = reference.adapt(Phi[rows], t[rows].astype(float), expected, sums, 0.3, together)
            moves = np.abs(sum(case.Phi)).T @ np.abs(t)
            assert_close(new, expected, np.abs(values) + 0.3 * moves / np.sqrt(squares), 2 * case.rounding)
            assert_close(grown, sums, squares + moves**2, 2 * case.rounding)

    def test_gram_is_zero_between_cells_and_adds_up_forms(self, dtype, how, degree, in_order, ordered, unit):
        case = Case(how, dtype, degree, in_order=in_order, ordered=ordered, unit=unit)
        scratch = np.zeros(_core.gram_scratch_bytes(case.rows, case.n), dtype=np.uint8)
        for first, last in [(0, case.n), (4, 13)]:
            out = np.full((last - first, last - first), np.nan)
            _core.gram(case.rows, case.expansion.features, first, last, out, scratch)
            Phi = [part[first:last] for part in case.Phi]
            size = sum(np.abs(part) @ np.abs(part).T for part in Phi)
            assert_close(out, sum(part @ part.T for part in Phi), size, (8 + degree) * case.rounding)
            assert (out[size == 0] == 0).all()


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("n_cells", [1, 2, 3, 63, 64, 65, 128, 200])
def test_nearest_is_the_first_of_the_nearest_centres(instruction_set, dtype, make, n_cells):
    """Of whole numbers, of which all sums are exact: there are many ties."""
    random = np.random.default_rng(n_cells)
    X = random.integers(-2, 3, size=(70, 5)).astype(dtype)
    columns = np.array([0, 2, 3])
    use = np.array([0, -1, 1, 2, -1], dtype=np.int32)
    centres = random.integers(-2, 3, size=(n_cells, 3)).astype(np.float64)
    partition = Partition(use, centres, np.zeros((n_cells, 5)), None)
    distances = ((X[:, None, columns] - centres) ** 2).sum(axis=2)
    assert n_cells < 63 or (np.diff(np.sort(distances, axis=1)[:, :2]) == 0).mean() > 0.2
    for n_jobs in (1, 3):
        assert np.array_equal(partition.cell(make(X), n_jobs), distances.argmin(axis=1))
    order, part = random.permutation(70).astype(np.int32), np.empty(9, dtype=np.int32)
    rows = Rows(make(X)).core
    rows.set_order(order)
    _core.nearest(rows, 11, 20, use, partition._centres, partition._half, n_cells, part)
    assert np.array_equal(part, distances.argmin(axis=1)[order[11:20]])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
def test_rows_are_shifted_by_their_cells_and_columns_left_out_count_for_the_norm(dtype, make):
    random = np.random.default_rng(0)
    n, d, n_cells = 50, 7, 4
    X = (random.integers(-2, 3, size=(n, d)) * (random.uniform(size=(n, d)) < 0.6)).astype(dtype)
    by = random.integers(-1, 2, size=(n_cells, d)).astype(np.float64)
    cell = random.integers(n_cells, size=n).astype(np.int32)
    place = np.argsort(random.uniform(size=(n_cells, d)), axis=1).astype(np.int32)
    place[1:][place[1:] >= [[7], [3], [0]]] = -1  # the last cell has no columns
    beyond = np.full(n, np.nan)
    shifted = shift_rows(make(X), Moved.of(by), place, cell, beyond)
    assert (
        shifted.dtype == dtype
        and sparse.csr_array(shifted[:3], shifted.shape).has_sorted_indices
        and shifted.data.all()
    )
    expected, left_out = np.zeros((n, d)), np.zeros(n)
    for i in range(n):
        for j in range(d):
            value = X[i, j] - by[cell[i], j]
            if place[cell[i], j] >= 0:
                expected[i, place[cell[i], j]] = value
            else:
                left_out[i] += value**2
    assert np.array_equal(shifted.toarray(), expected) and np.array_equal(beyond, left_out)
    empty, beyond = cell == 3, np.full((cell == 3).sum(), np.nan)  # rows of which nothing else is left
    assert shift_rows(make(X[empty]), Moved.of(by), place, cell[empty], beyond).data.size == 0
    assert np.array_equal(beyond, left_out[empty])


# Models.


def dense_data(n=120, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3)) + np.array([5, 0, -1])
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n)


def sparse_data(n=120, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 8)) * (random.uniform(size=(n, 8)) < 0.3)
    return sparse.csr_array(X), X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n)


def one_hot_data(n=120, seed=0):
    """Three columns of four values, as flags."""
    random = np.random.default_rng(seed)
    values = random.integers(4, size=(n, 3))
    X = np.hstack([np.eye(4)[column] for column in values.T])
    return sparse.csr_array(X), (values[:, 0] == values[:, 1]) - 0.5 + 0.6 * random.normal(size=n)


def mixed_data(n=120, seed=0):
    """Two numbers, flags, and a column that is constant."""
    random = np.random.default_rng(seed)
    flags = (random.uniform(size=(n, 4)) < [0.1, 0.3, 0.6, 0.95]) * 1.0
    X = np.hstack([random.normal(size=(n, 2)), flags, np.full((n, 1), 3.0)])
    return X, X[:, 0] * (X[:, 3] - 0.5) + X[:, 1] + 0.3 * random.normal(size=n)


DATA = {"dense": dense_data, "sparse": sparse_data, "one hot": one_hot_data, "mixed": mixed_data}
KINDS = {
    "binary": lambda **settings: TaylorSVC(**settings),
    "ovr": lambda **settings: TaylorSVC(**settings),
    "crammer_singer": lambda **settings: TaylorSVC(multi_class="crammer_singer", **settings),
    "log_loss": lambda **settings: TaylorSVC(loss="log_loss", **settings),
    "regression": lambda **settings: TaylorSVR(**settings),
    "two targets": lambda **settings: TaylorSVR(loss="squared_error", **settings),
}


def as_array(X):
    return (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float64)


def targets_of(kind, score):
    if kind == "regression":
        return score
    if kind == "two targets":
        return np.column_stack([score, np.cos(score)])
    return np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]) if kind in ("ovr", "crammer_singer") else [0.2])


class Divided(reference.Partition):
    """Rows divided once; of unit rows, columns that a cell has not count for nothing."""

    def known(self, X, cell):
        """Rows with the centre's values where their cells have no columns."""
        return np.where(self.has[cell], X, self.by[cell])

    def features(self, X, cell, kernel):
        return super().features(self.known(X, cell) if kernel.unit else X, cell, kernel)

    def kernel_matrix(self, X, Y, cell, other_cell, kernel):
        if kernel.unit:
            X, Y = self.known(X, cell), self.known(Y, other_cell)
        return super().kernel_matrix(X, Y, cell, other_cell, kernel)

    def factors(self, X, cell, kernel):
        """s(x) of each row."""
        return reference.row_factor((self.known(X, cell) if kernel.unit else X) - self.by[cell], kernel)


def partitions_of(model):
    """The model's cells, for the reference."""
    for partition in model._shift.partitions:
        has = np.ones(partition.by.shape, dtype=bool) if partition.place is None else partition.place >= 0
        yield partition, Divided(np.flatnonzero(partition.use >= 0), partition.centres, partition.by, has)


def kernel_like(model, unit=None):
    unit = model.normalize is not False if unit is None else unit
    return reference.kernel_of("gaussian", model.degree_, model.gamma_, unit=unit)


def explicit_kernel(model, X, Y=None, *, exact=False):
    """(1/P) sum over partitions of 1[same cell] K~(x - m, x' - m), or of the exact kernel."""
    X, Y = as_array(X), as_array(X if Y is None else Y)
    total = 0
    for own, partition in partitions_of(model):
        cells = own.cell(X), own.cell(Y)
        if exact:
            total = total + (cells[0][:, None] == cells[1]) * reference.gaussian(X, Y, model.gamma_)
        else:
            total = total + partition.kernel_matrix(X, Y, *cells, kernel_like(model))
    return total / len(model._shift.partitions)


def explicit_features(model, X):
    """The features that coef_ is about."""
    X = as_array(X)
    return np.hstack(
        [partition.features(X, own.cell(X), kernel_like(model)) for own, partition in partitions_of(model)]
    )


def asked_of(model, y, weight=None):
    """What was asked of the rows."""
    if isinstance(model, TaylorSVR):
        epsilon = 0.0 if model.loss == "squared_error" else model.epsilon
        loss = model.loss.replace("squared_error", "squared_epsilon_insensitive")
        targets = np.reshape(y - model.offset_, (len(y), -1))
    else:
        joint, epsilon = model.multi_class != "ovr", 0.0
        loss = model.multi_class if joint else model.loss_
        targets = np.where(np.asarray(y)[:, None] == model.classes_, 1, -1)
        targets = targets if joint or len(model.classes_) > 2 else targets[:, 1:]
    return reference.Asked(loss, targets, reference.weights(loss, targets, weight), epsilon)


def values_of(model, X):
    """f(x), [n, K]."""
    return model._outputs(X)


@cache
def fitted(data, kind, solver="dual", n_cells=4, n_partitions=2, normalize="auto"):
    X, score = DATA[data]()
    y = targets_of(kind, score)
    settings = {"degree": 3, "gamma": 0.3, "C": 2.0, "tol": 1e-3, "max_iter": 60, "normalize": normalize}
    model = KINDS[kind](
        **settings, n_cells=n_cells, n_partitions=n_partitions, solver=solver, warm_start=True, random_state=0
    )
    return model.fit(X, y), X, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
@NORMALIZE
@slow
def test_outputs_are_those_of_the_localised_kernel(data, kind, normalize):
    model, X, y = fitted(data, kind, normalize=normalize)
    new, _ = DATA[data](n=30, seed=1)
    beta = model.C * model._alpha * asked_of(model, y).signs
    if kind == "crammer_singer":
        assert np.abs(beta.sum(axis=1)).max() < 1e-12
    for rows in (X, new):
        assert np.allclose(values_of(model, rows), explicit_kernel(model, rows, X) @ beta, rtol=0, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", ["dense", "sparse"])
@NORMALIZE
@slow
def test_objective_and_gap_are_those_of_the_localised_problem(data, kind, solver, normalize):
    model, X, y = fitted(data, kind, solver, normalize=normalize)
    asked, certificate = asked_of(model, y), model.certificate_
    coef, n_partitions = np.atleast_2d(model.monomial_coef_), len(model._shift.partitions)
    losses = asked.losses(explicit_features(model, X) @ coef.T).sum()
    primal = (n_partitions * (coef**2).sum() / (2 * model.C) + losses) / len(y)
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    if solver == "adagrad":
        assert np.isnan(certificate.dual)
        return
    primal, dual = reference.objectives(asked, explicit_kernel(model, X), model.C, model._alpha)
    assert certificate.dual == pytest.approx(dual.sum() / len(y), rel=1e-9)
    if solver == "dual":
        assert certificate.primal == pytest.approx(primal.sum() / len(y), rel=1e-9)
        assert certificate.relative_gap < 2e-3


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["binary", "ovr", "two targets"])
@pytest.mark.parametrize("data", DATA)
@NORMALIZE
@slow
def test_coef_and_monomials_explain_outputs(data, kind, solver, normalize):
    model, X, _ = fitted(data, kind, solver, normalize=normalize)
    coef = np.atleast_2d(model.monomial_coef_)
    assert coef.shape[1] == model.n_slots_
    assert np.allclose(values_of(model, X), explicit_features(model, X) @ coef.T, rtol=0, atol=1e-9)
    if kind != "binary":
        return
    rows, cells = as_array(X), [own.cell(as_array(X)) for own, _ in partitions_of(model)]
    factors = [partition.factors(rows, own.cell(rows), kernel_like(model)) for own, partition in partitions_of(model)]
    first = np.cumsum([0] + [len(by) for by in model.shift_])
    total = np.zeros(len(rows))
    for monomial in model.top_monomials(k=model.n_slots_):
        p = np.searchsorted(first, monomial.cell, side="right") - 1
        shift = model.shift_[p][monomial.cell - first[p]]
        moved, here = rows - shift, cells[p] == monomial.cell - first[p]
        product = np.prod([moved[:, j] ** e for j, e in monomial.powers.items()], axis=0)
        assert monomial.share == pytest.approx((here & (product != 0)).mean())
        for j in monomial.powers:
            assert (f"x{j}" if shift[j] == 0 else f"(x{j} ") in monomial.name
        metric = reference.metric([j + 1 for j, e in monomial.powers.items() for _ in range(e)], (1.0,) * 4)
        scale = (2 * model.gamma_) ** (sum(monomial.powers.values()) / 2)
        total += here * monomial.weight * np.sqrt(metric) * scale * factors[p] * product
    assert np.allclose(total, model.decision_function(X), rtol=0, atol=1e-9)


@NORMALIZE
def test_rows_with_columns_that_their_cell_never_saw_are_further_away(normalize):
    """What is not a cell's own counts for the distance from its centre, which unit rows do not feel."""
    X, score = one_hot_data()
    X = sparse.csr_array(sparse.hstack([X, sparse.csr_array((X.shape[0], 2))]))  # two columns of zeros
    model = TaylorSVC(gamma=0.3, n_cells=6, normalize=normalize, random_state=0).fit(X, score > 0)
    (partition,) = model._shift.partitions
    assert (partition.place[:, -2:] == -1).all()
    new = X.toarray()
    new[:, -1] = 2
    share = np.exp(-0.3 * 4) if normalize is False else 1.0
    assert np.allclose(model.decision_function(new), share * model.decision_function(X), rtol=1e-12)
    new = np.random.default_rng(0).permuted(new, axis=1)  # other columns for all of them
    assert partition.shifted(new, partition.cell(new)).data.size < np.count_nonzero(new)
    assert np.allclose(
        model.decision_function(new), explicit_features(model, new) @ model.monomial_coef_[0], atol=1e-10
    )


# Cells that are not as one would have them.


def test_one_cell_is_the_plain_model():
    X, score = dense_data()
    plain = TaylorSVC(gamma=0.3, random_state=0).fit(X, score > 0)
    one = clone(plain).set_params(n_cells=1, n_partitions=5).fit(X, score > 0)
    assert np.array_equal(one.monomial_coef_, plain.monomial_coef_) and not one.certificate_.cells
    cells = choose_cells(X, 1, 1, plain.degree_, np.random.RandomState(0))
    assert cells.n_slots == plain.n_slots_ and np.allclose(cells.partitions[0].by, plain.shift_, atol=0.02)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@slow
def test_there_are_no_more_cells_than_different_rows(make):
    X, y = np.repeat([[0.0, 1.0], [3.0, 1.0], [5.0, 2.0]], 10, axis=0), np.tile([0, 0, 0, 1, 1], 6)
    for n_cells in (3, 10, 1000):
        model = TaylorSVC(gamma=0.3, n_cells=n_cells, n_partitions=2, random_state=0).fit(make(X), y)
        assert [len(by) for by in model.shift_] == [3, 3]
        assert np.allclose(model.decision_function(make(X)), explicit_features(model, X) @ model.monomial_coef_[0])


def test_alike_rows_of_many_columns_do_not_warn():
    X = sparse.random_array((100, 400), density=0.02, format="csr", random_state=0)
    X = sparse.csr_array(sparse.vstack([X, X]))
    model = TaylorSVC(degree=1, n_cells=150, tol=1.0, random_state=0).fit(X, np.arange(200) % 2)
    assert len(model.shift_[0]) <= 100


def test_every_cell_has_rows():
    X, _ = dense_data()
    for n_cells in (2, 17, 60):
        cells = choose_cells(X, n_cells, 3, 2, np.random.RandomState(0))
        for partition in cells.partitions:
            assert np.bincount(partition.cell(X), minlength=len(partition.centres)).all()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@NORMALIZE
def test_constant_rows_have_one_cell_without_columns(make, tmp_path, normalize):
    X, y = make(np.full((20, 3), 2.0)), np.arange(20) % 3 == 0
    model = TaylorSVC(gamma=0.5, n_cells=3, normalize=normalize, random_state=0).fit(X, y)
    assert model.n_slots_ == 1 and model.top_monomials()[0].name == "1"
    new = np.array([[3.0, 2.0, 3.0]])
    share = np.exp(-0.5 * 2) if normalize is False else 1.0
    assert model.decision_function(new) == pytest.approx(share * model.decision_function(X)[0])
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").decision_function(new), model.decision_function(new))


def test_all_forms_of_rows_are_stored_alike():
    """Where partitions would choose otherwise: C relies on it."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        X = np.hstack([random.normal(size=(60, 4)), random.uniform(size=(60, 2)) < 0.3])
        cells = choose_cells(X, 8, 6, 3, np.random.RandomState(seed))
        assert len({partition.place is None for partition in cells.partitions}) == 1


@slow
def test_rows_of_weight_zero_take_no_part():
    X, score = mixed_data()
    y, weight = score > 0, np.random.default_rng(0).integers(0, 3, size=len(score)).astype(float)
    model = TaylorSVC(gamma=0.3, n_cells=5, warm_start=True, random_state=0).fit(X, y, sample_weight=weight)
    used = weight > 0
    assert model._alpha.shape == (used.sum(), 1)
    beta = model.C * weight[used].mean() * model._alpha[:, 0] * np.where(y[used], 1, -1)  # weights have the mean 1
    expected = explicit_kernel(model, X, X[used]) @ beta
    assert np.allclose(model.decision_function(X), expected, atol=1e-9)
    alone = weight.copy()
    (own, _), *_ = partitions_of(model)
    alone[own.cell(X) == 0] = 0  # a cell without rows
    certificate = clone(model).fit(X, y, sample_weight=alone).certificate_
    assert len(certificate.cells) == 5 and certificate.cells[0].primal == 0


# Training in other ways.


@pytest.mark.parametrize("data", DATA)
@slow
def test_batches_come_close_to_fit_and_leave_the_cells_alone(data):
    X, score = DATA[data](n=600)
    y = score > 0.2
    settings = {"degree": 2, "gamma": 0.3, "n_cells": 3, "n_partitions": 2, "random_state": 0}
    stream = TaylorSVC(**settings)
    for _ in range(3):
        for first in range(0, 600, 100):
            some = slice(first, first + 100)
            stream.partial_fit(X[some], y[some], classes=[False, True])
            if first == 0:
                cells = stream._shift
    assert stream._shift is cells
    assert np.allclose(stream.decision_function(X), explicit_features(stream, X) @ stream.monomial_coef_[0], atol=1e-9)
    fit = TaylorSVC(**settings, tol=1e-3).fit(X, y)
    assert stream.score(X, y) > fit.score(X, y) - 0.05
    certificate = stream.certify(X, y)
    assert certificate.relative_gap < 0.3 and not certificate.cells


def test_models_with_cells_do_not_grow():
    X, score = sparse_data()
    model = TaylorSVC(n_cells=3, grow=True, random_state=0).partial_fit(X, score > 0, classes=[False, True])
    with pytest.raises(ValueError, match="with cells or along principal axes cannot grow"):
        model.partial_fit(sparse.hstack([X, X]), score > 0)


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_warm_starts_begin_where_the_last_fit_ended(solver):
    X, score = dense_data()
    model = TaylorSVC(gamma=0.3, n_cells=4, n_partitions=2, solver=solver, max_iter=40, random_state=0, warm_start=True)
    reached = model.fit(X, score > 0).certificate_.primal
    first = model.set_params(max_iter=1).fit(X, score > 0).certificate_.primal
    cold = clone(model).set_params(warm_start=False).fit(X, score > 0).certificate_.primal
    assert first < reached + 0.3 * (cold - reached)


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_interrupted_models_stand_where_training_stood(solver, monkeypatch):
    X, score = mixed_data()
    model = TaylorSVC(gamma=0.3, n_cells=4, n_partitions=2, solver=solver, tol=1e-9, max_iter=3, random_state=0)
    expected = clone(model).fit(X, score > 0)
    kind = {"dual": _core.Dual, "pegasos": _core.Pegasos, "adagrad": _core.Adagrad}[solver]

    class Stopped(kind):
        """Ctrl-C among the steps of the fourth epoch."""

        epochs = 0

        def run(self, *args):
            super().run(*args)
            Stopped.epochs += args[0] == 0
            if Stopped.epochs == 4:
                raise KeyboardInterrupt

    if solver == "adagrad":  # which runs to find its step size, too
        monkeypatch.setattr("taylorkern._train.primal.SEARCH_FROM", 10**6)
        expected = clone(model).fit(X, score > 0)
    monkeypatch.setattr(_core, kind.__name__, Stopped)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(max_iter=50).fit(X, score > 0)
    assert model.n_iter_ == 3 and model.interrupted_ and not model.certificate_.cells
    assert np.isfinite(model.monomial_coef_).all()
    last_whole = np.allclose(model.monomial_coef_, expected.monomial_coef_, rtol=0, atol=1e-9)
    assert last_whole == (solver != "dual")  # the others have models of whole epochs, or of averages


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@slow
def test_bits_depend_neither_on_threads_nor_on_the_batch(data, solver):
    X, score = DATA[data](n=300)
    y = np.digitize(score, [-0.3, 0.5])
    settings = {"gamma": 0.3, "n_cells": 5, "n_partitions": 2, "max_iter": 6, "random_state": 0}
    one, two, three = (
        TaylorSVC(**settings, solver=solver, n_jobs=n_jobs).fit(X, y).set_params(n_jobs=n_jobs) for n_jobs in (1, 2, 3)
    )
    whole = one.decision_function(X)
    for other in (two, three):
        assert np.array_equal(other.monomial_coef_, one.monomial_coef_) and str(other.certificate_) == str(
            one.certificate_
        )
        assert np.array_equal(other.decision_function(X), whole)
    for first, last in pairwise([0, 1, 3, 20, 150, 300]):
        assert np.array_equal(one.decision_function(X[first:last]), whole[first:last])
    mixed = np.random.default_rng(0).permutation(300)
    assert np.array_equal(two.decision_function(X[mixed]), whole[mixed])


def equal_states(one, other):
    """Whether warm starts go on from the same."""
    if one._stream is None:
        return other._stream is None and np.array_equal(one._alpha, other._alpha)
    return all(map(np.array_equal, one._stream, other._stream)) and one._shift.same(other._shift)


@pytest.mark.parametrize("n_partitions", [1, 2])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["ovr", "crammer_singer", "regression"])
@pytest.mark.parametrize("data", ["dense", "mixed", "one hot"])
@slow
def test_models_come_back_bit_for_bit(tmp_path, data, kind, solver, n_partitions):
    model, X, _ = fitted(data, kind, solver, n_partitions=n_partitions)
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(values_of(again, X), values_of(model, X))
        assert np.array_equal(again.monomial_coef_, model.monomial_coef_)
        assert repr(again.certificate_) == repr(model.certificate_)
        assert str(again.top_monomials()) == str(model.top_monomials())
        assert all(np.array_equal(one, other) for one, other in zip(again.shift_, model.shift_, strict=True))
        assert equal_states(again, model)


@slow
def test_files_of_models_with_cells_that_cannot_be_are_refused(tmp_path):
    def refused(model, message):
        model.save(tmp_path / "model")
        with pytest.raises(ValueError, match=message):
            load(tmp_path / "model")

    one, two = (clone(fitted("mixed", "binary")[0]).set_params(n_partitions=n) for n in (1, 2))
    X, score = mixed_data()
    for model in (one, two):
        model.fit(X, score > 0)
    whole = one.certificate_
    one.certificate_ = replace(whole, cells=whole.cells[:-1])
    refused(one, r"certificate.cells has the shape \(3, 11\); it should be \(4, 11\)")
    one.certificate_ = replace(whole, cells=tuple(replace(part, n_underflowed=0.5) for part in whole.cells))
    refused(one, "certificate.cells, n_underflowed: these are no integers")
    two.certificate_ = replace(two.certificate_, cells=whole.cells)
    refused(two, "'certificate.cells', which does not belong there")
    two.certificate_ = replace(two.certificate_, cells=())
    two._shift.partitions[1].place = None
    refused(two, "some partitions have a place, and others have none")


# The certificate.


def random_model(seed, normalize):
    """A small problem of any kind, trained for a while: (model, rows, targets, weights)."""
    random = np.random.default_rng(seed)
    data = list(DATA)[seed % 4]
    X, score = DATA[data](n=int(random.integers(20, 50)), seed=seed)
    kind = list(KINDS)[seed % 6]
    model = KINDS[kind](
        degree=int(random.integers(1, 4)),
        gamma=float(10 ** random.uniform(-1.5, 0)),
        C=float(10 ** random.uniform(-1, 1.5)),
        solver=SOLVERS[seed % 7 % 3],
        n_cells=int(random.integers(2, 7)),
        n_partitions=int(random.choice([1, 1, 2, 3])),
        normalize=normalize,
        tol=float(10 ** random.uniform(-5, -2)),
        max_iter=60,
        random_state=seed,
    )
    weight = random.uniform(0.1, 3, size=X.shape[0]) if seed % 3 == 0 else None
    y = targets_of(kind, score)
    model.fit(X, y, sample_weight=weight)
    if model.solver == "adagrad":
        model.certify(X, y, sample_weight=weight)
    return model, X, y, weight


@pytest.fixture(scope="module", params=["auto", False], ids=["unit", "paper"])
def certified(request):
    return [random_model(seed, request.param) for seed in range(42)]


@slow
def test_interval_holds_the_optimum_of_the_exact_localised_problem(certified):
    useful = 0
    for model, X, y, weight in certified:
        asked, W = asked_of(model, y, weight), len(y) if weight is None else weight.sum()
        lower, upper, *_ = reference.optimum(asked, explicit_kernel(model, X, exact=True), model.C)
        low, high = model.certificate_.exact_interval
        assert low <= upper.sum() / W + 1e-9, model
        assert high >= lower.sum() / W - 1e-9, model
        assert low <= model.certificate_.sampled_interval[0] <= high
        useful += low > 0.5 * high
        for part, one, other in zip(model.certificate_.parts, lower / W, upper / W, strict=False):
            assert part.exact_interval[0] <= other + 1e-9 and part.exact_interval[1] >= one - 1e-9
    assert useful > len(certified) / 3


@slow
def test_each_cell_has_a_certificate_of_its_own_problem(certified):
    n_seen = 0
    for model, X, y, weight in certified:
        whole = model.certificate_
        if len(model._shift.partitions) > 1:
            assert whole.cells == ()
            continue
        ((own, _),) = partitions_of(model)
        cell, asked = own.cell(as_array(X)), asked_of(model, y, weight)
        W, K = len(y) if weight is None else weight.sum(), explicit_kernel(model, X, exact=True)
        assert len(whole.cells) == len(model.shift_[0])
        for c, part in enumerate(whole.cells):
            rows = np.flatnonzero(cell == c)
            lower, upper, *_ = reference.optimum(asked.rows(rows), K[np.ix_(rows, rows)], model.C)
            low, high = part.exact_interval
            assert low <= upper.sum() / W + 1e-9 and high >= lower.sum() / W - 1e-9
            assert part.gap == part.primal - part.dual and (high == part.primal or model.normalize == "auto")
            assert np.isnan([*part.sampled_interval, part.sampled_stderr, part.theorem1]).all()
            n_seen += 1
        for name in ("primal", "dual", "gap"):
            total = sum(getattr(part, name) for part in whole.cells)
            assert total == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-12)
        for end in (0, 1):
            total = sum(part.exact_interval[end] for part in whole.cells)
            assert total == pytest.approx(whole.exact_interval[end], rel=1e-9, abs=1e-12)
        worst = max(whole.cells, key=lambda part: part.gap)
        assert f"largest gap of {len(whole.cells)} cells" in str(whole) and f"{worst.gap:.2g}, relative" in str(whole)
    assert n_seen > 60


@pytest.mark.parametrize("degree", [1, 4])
@pytest.mark.parametrize("n_partitions", [1, 3])
@NORMALIZE
def test_bound_is_a_sum_over_cells_and_partitions(degree, n_partitions, normalize):
    """Of theta alpha with the best theta: what is kept of |w(alpha)|^2, and a bound on what is cut, in each cell."""
    X, score = dense_data()
    settings = {"degree": degree, "gamma": 0.2, "C": 3.0, "n_cells": 4, "n_partitions": n_partitions}
    model = TaylorSVC(**settings, normalize=normalize, warm_start=True, random_state=0)
    certificate = model.fit(X, score > 0).certificate_
    alpha, signs, terms, kept, cuts, sums = model._alpha[:, 0], np.where(score > 0, 1, -1), [], [], [], 0.0
    for own, partition in partitions_of(model):
        cell = own.cell(X)
        K = partition.kernel_matrix(X, X, cell, cell, kernel_like(model, unit=False))
        roots = np.sqrt(1 - np.diag(K))
        for c in range(len(partition.by)):
            here = cell == c
            per_sum = model.C / n_partitions / (2 * len(X))
            terms.append((alpha * here).sum() / len(X))
            kept.append(per_sum * (alpha * signs * here) @ K @ (alpha * signs * here))
            cuts.append(per_sum * (alpha * roots * here).sum() ** 2)
            sums += (roots * here).sum() ** 2
    terms, norms = np.array(terms), np.array(kept) + cuts
    theta = min(terms.sum() / n_partitions / (2 * norms.sum()), 1)
    assert theta < 1 if degree == 1 else theta == 1
    low = theta * alpha.mean() - theta**2 * norms.sum()
    if n_partitions == 1:
        lows = np.maximum(theta * terms - theta**2 * norms, 0)
        assert [part.exact_interval[0] for part in certificate.cells] == pytest.approx(lows, rel=1e-6)
        low = lows.sum()
    assert certificate.exact_interval[0] == pytest.approx(low, rel=1e-6)
    assert certificate.exact_interval[0] > (0.3 if degree == 4 else 0.05) * certificate.dual
    theorem1 = np.sqrt(model.C / n_partitions / len(X) * sums) if normalize is False else np.nan
    assert certificate.theorem1 == pytest.approx(theorem1, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("n_partitions", [1, 2])
@NORMALIZE
@slow
def test_columns_that_were_left_out_are_cut(n_partitions, normalize):
    """Other rows than those that were trained on, with entries where the cells have no columns."""
    X, score = one_hot_data(n=60)
    y = score > 0
    settings = {
        "degree": 3,
        "gamma": 0.05,
        "C": 0.3,
        "n_cells": 4,
        "n_partitions": n_partitions,
        "normalize": normalize,
    }
    model = TaylorSVC(**settings, random_state=0).fit(X, y)
    new = X.toarray() + np.random.default_rng(0).choice([0.0, 0.7], p=[0.8, 0.2], size=X.shape)
    problem = model._problem(new, y, None, model._meaning(), model._expansion, model._shift)
    kernel, n_left_out = reference.kernel_of("gaussian", 3, 0.05), 0
    for form, (own, partition) in zip(problem.rows.forms(), partitions_of(model), strict=True):
        cell = own.cell(new)
        expected = 1 - np.diag(partition.kernel_matrix(new, new, cell, cell, kernel))
        assert np.allclose(residuals_of(problem, form)[0], expected, rtol=1e-9, atol=1e-12)
        n_left_out += np.count_nonzero(form.core.beyond)
    assert n_left_out > 10
    certificate = model.certify(new, y, max_iter=100)
    assert np.isnan(certificate.sampled_stderr) and "sampled" not in str(certificate)
    assert certificate.sampled_interval == pytest.approx(certificate.exact_interval, rel=1e-14)
    lower, upper, *_ = reference.optimum(asked_of(model, y), explicit_kernel(model, new, exact=True), model.C)
    low, high = certificate.exact_interval
    assert 0 < low <= upper[0] / 60 and high >= lower[0] / 60


def test_rows_without_features_have_none_in_any_form():
    X, none = np.linspace(-1, 1, 7)[:, None], np.zeros(1, dtype=np.int32)
    near, far = (Partition(none, np.zeros((1, 1)), np.full((1, 1), by), None) for by in (0.0, 1e3))
    y, expansion = np.array([[1], [-1]] * 3 + [[1]], dtype=np.int8), Expansion(1, degree=2, gamma=1.0)
    for partitions, expected in [([near, far], 0), ([far, far], 7), ([near], 0), ([far], 7)]:
        problem = Problem(Cells(partitions, 2).rows(X), y, None, expansion, LABEL_LOSSES["hinge"], 1.0)
        in_cells = np.zeros((1, 1)), np.zeros((1, 1))
        alpha, norm2 = np.zeros((7, 1)), np.zeros(1)
        trained = Trained(problem.table(), "features", np.zeros((7, 1)), np.zeros(1))
        certificate = certify(problem, np.ones(1), trained, alpha, norm2, np.random.RandomState(0), in_cells)
        assert certificate.n_underflowed == expected
        assert [part.n_underflowed for part in certificate.cells] == [expected] * (len(partitions) == 1)


# What is refused, and what scikit-learn asks of estimators.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_cells": 0}, "n_cells must be an integer > 0; got 0"),
        ({"n_cells": "many"}, "n_cells must be an integer > 0; got 'many'"),
        ({"n_cells": 2.0}, "n_cells must be an integer > 0; got 2.0"),
        ({"n_cells": True}, "n_cells must be an integer > 0; got True"),
        ({"n_partitions": 0}, "n_partitions must be an integer > 0; got 0"),
        ({"n_partitions": None}, "n_partitions must be an integer > 0; got None"),
        ({"n_cells": 3, "kernel": "polynomial"}, "takes the Gaussian kernel .* got kernel='polynomial'"),
        ({"n_cells": 3, "shift": None}, "shift=None"),
        ({"n_cells": 3, "shift": [0.0, 1.0, 2.0]}, r"shift=\[0.0, 1.0, 2.0\]"),
        ({"n_cells": 3, "shift": np.zeros(3)}, "shift=array"),
        ({"n_cells": 10**6, "memory_limit": 10**3}, "centres"),
    ],
)
@pytest.mark.parametrize("estimator", [TaylorSVC, TaylorSVR])
def test_wrong_cells_are_refused_with_their_value(estimator, parameters, message):
    X, score = dense_data(n=30)
    model = estimator(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, score > 0)
    assert not hasattr(model, "monomial_coef_")


def test_tables_beyond_memory_are_refused():
    X, score = dense_data()
    with pytest.raises(ValueError, match="training with .* monomials"):
        TaylorSVC(degree=8, n_cells=20, memory_limit=50_000).fit(X, score > 0)


def not_exact(estimator):
    reason = "weights are equivalent to repeated rows only to the accuracy of the gap, and cells differ"
    failing = {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
    if estimator.n_partitions > 1:  # the hinge just passes
        failing["check_class_weight_classifiers"] = "cells of 16 rows, of which few are of the class that counts"
    return failing


@parametrize_with_checks(
    [TaylorSVC(n_cells=3, n_partitions=2), TaylorSVC(n_cells=3, loss="hinge"), TaylorSVR(n_cells=3)],
    expected_failed_checks=not_exact,
)
@slow
def test_scikit_learn_accepts_estimators_with_cells(estimator, check):
    check(estimator)


@given(
    X=arrays.arrays(np.float64, st.tuples(st.integers(2, 14), st.integers(1, 4)), elements=st.integers(-3, 3)),
    new=arrays.arrays(np.float64, (5, 4), elements=st.integers(-4, 4)),
    dtype=st.sampled_from(REALS),
    as_sparse=st.booleans(),
    n_cells=st.integers(2, 16),
    n_partitions=st.integers(1, 3),
    degree=st.integers(1, 4),
    solver=st.sampled_from(SOLVERS),
)
@slow
def test_outputs_are_the_formula_whatever_the_data(X, new, dtype, as_sparse, n_cells, n_partitions, degree, solver):
    make = sparse.csr_array if as_sparse else np.asarray
    y, new = np.arange(len(X)) % 2, new[:, : X.shape[1]]
    model = TaylorSVC(
        degree=degree, gamma=0.1, n_cells=n_cells, n_partitions=n_partitions, solver=solver, max_iter=8, random_state=0
    ).fit(make(X.astype(dtype)), y)
    assert isinstance(model._shift, Cells)
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    for rows in (X, new):
        expected = explicit_features(model, rows) @ model.monomial_coef_[0]
        assert np.allclose(model.decision_function(make(rows)), expected, rtol=tolerance, atol=tolerance)
