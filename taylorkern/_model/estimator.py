"""What the estimators share: from checked data to a trained model, and the model in the user's terms."""

import warnings
from functools import partial
from math import comb, inf, isnan
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._data.checks import check_rows, learn_columns, look_at
from .._data.expansion import (
    Expansion,
    TooManyMonomials,
    canonical_kernel,
    check_count,
    check_degree,
    check_normalize,
    check_positive,
    padded,
    resolve_gamma,
)
from .._data.memory import check_memory, limit_of
from .._data.randomness import fixed_random_state
from .._data.rows import Csr, Rows, is_csr
from .._data.threads import check_jobs
from .._place.cells import Cells, Sample, choose_cells
from .._place.rotation import Rotation, choose_rotation
from .._place.shift import choose_shift
from .._train.certificate import certify, interrupted_certificate
from .._train.dual import Dual, dual_start
from .._train.loop import SOLVERS, train
from .._train.primal import Adagrad, Stream
from .._train.problem import Problem, Trained, squared_norms
from .approximation import ApproximationWarning, warning_of
from .auto_cells import auto_cells
from .checkpoint import Epochs, open_checkpoint, random_arrays, random_state, set_random_state
from .degree import BYTES, auto_degree, degree_of, some_rows
from .files import ModelFileMixin
from .names import column_shares, in_user_order, shifted_name, strongest, strongest_in_cells
from .observe import FRAMES, CallbackSupportMixin, Observer
from .predictor import LEAST, NotPlain, outputs
from .remedy import remedy

# Tables of n_slots numbers for each output that a solver holds, the model's included.
TABLES = {"dual": 2, "pegasos": 5, "adagrad": 5}
# Bytes for each row while it works: of its own, and for each output.
ROW_BYTES, OUTPUT_BYTES = 100, {"dual": 70, "pegasos": 70, "adagrad": 40}
SAMPLE = 2**12  # rows that are kept to tell how often a monomial occurs


class TaylorModel(ModelFileMixin, CallbackSupportMixin, BaseEstimator):
    """Trains and predicts K outputs f_k(x). What those mean, an estimator says by the methods that raise here."""

    # What an estimator says.

    def _check_own_parameters(self):
        """Refuse wrong values of the parameters that only this estimator has."""
        raise NotImplementedError

    def _check_y(self, y):
        """y as an array of finite values with one entry or line for each row."""
        raise NotImplementedError

    def _learn_y(self, y, classes=None):
        """The fitted attributes that say what outputs mean, from the first y (and, with partial_fit, the classes)."""
        raise NotImplementedError

    def _encode_y(self, y, meaning, rows, sample_weight):
        """(targets [n, K] as `Problem` takes them, weights or None, favour or None)."""
        raise NotImplementedError

    def _loss(self, meaning):
        """The loss that is trained."""
        raise NotImplementedError

    def _n_outputs(self, meaning):
        """K."""
        raise NotImplementedError

    def _count_support(self, targets, alpha, meaning):
        """`n_support_`, from the targets of the support vectors and the dual point of all rows."""
        raise NotImplementedError

    def _to_model(self, table, meaning):
        """The trained tables -> those that predict."""
        return table

    # Training.

    def _fit(self, X, y, sample_weight, checkpoint, checkpoint_every):
        self._check_parameters()
        rows, y_checked = self._check_data(X, y)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        facts = {"X": rows, "y": y_checked, "sample_weight": weight}
        store = open_checkpoint(self, checkpoint, checkpoint_every, "fit", facts)
        saved = store.load() if store else None
        meaning = self._learn_y(y_checked)
        random = random_state(self.random_state, saved)
        began = random_arrays(random, "began") if store else {}
        expansion, shift = self._expand_rows(rows, y_checked, sample_weight, meaning, random, self.solver)
        self._check_memory(rows, expansion, shift, meaning)
        problem = self._problem(rows, y_checked, sample_weight, meaning, expansion, shift)
        if saved is not None:
            set_random_state(random, saved)
        begin = self._warm(problem, shift) if saved is None else SOLVERS[self.solver].blank(problem)
        solver = SOLVERS[self.solver](problem, random, self.tol, **begin)

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        observer = Observer(
            self,
            {"X": X, "y": y, "metadata": metadata},
            lambda: self._model_attributes(solver.model().copy(), problem, shift, meaning),
        )
        with observer.watching():
            epochs = Epochs(store, saved, began) if store else None
            outcome = train(solver, tol=self.tol, max_iter=self._most_epochs, observer=observer, epochs=epochs)
        if outcome.n_iter == 0:
            raise KeyboardInterrupt
        alpha, norm2 = solver.point()
        certificate = None
        if not outcome.interrupted:
            try:
                in_cells = solver.in_cells() if problem.cells else None
                trained = solver.trained()
                certificate = certify(problem, outcome.record.primal, trained, alpha, norm2, random, in_cells)
            except KeyboardInterrupt:
                outcome = outcome._replace(interrupted=True)
        if certificate is None:
            certificate = interrupted_certificate(problem, outcome.record)
        learn_columns(self, X)  # this late, so that a failed fit changes nothing
        fitted = self._model_attributes(solver.model(), problem, shift, meaning)
        fitted |= {
            "n_iter_": outcome.n_iter,
            "history_": observer.history(outcome.record),
            "certificate_": certificate,
            "interrupted_": outcome.interrupted,
            "_alpha": alpha if self.warm_start else None,
            "_support": self._find_support(problem, alpha, meaning),
            "_stream": solver.stream() if self.warm_start and self.solver == "adagrad" else None,
        }
        self.__dict__.pop("waiting_", None)
        self.__dict__.update(fitted)  # all at once, whenever Ctrl-C comes
        if outcome.interrupted:
            raise KeyboardInterrupt
        if store:
            store.remove()
        self._warn(problem, outcome)
        self._warn_of_cut(problem, trained.margins, 3 + FRAMES)
        return self

    def _partial_fit(self, X, y, sample_weight, learn):
        """One pass over a batch; `learn` makes the attributes of `_learn_y` in the first call."""
        self._check_parameters()
        first = not hasattr(self, "_table")
        rows, y_checked = self._check_data(X, y)
        meaning = learn(y_checked, first)
        random = fixed_random_state(self.random_state)
        if first:
            expansion, shift = self._expand_rows(
                rows, y_checked, sample_weight, meaning, random, "adagrad", compact=False
            )
        else:
            expansion, shift = self._grown(X, rows)
            rows = rows.astype(self._table.dtype, copy=False)
        self._check_memory(rows, expansion, shift, meaning, solver="adagrad", settled=not first)
        problem = self._problem(rows, y_checked, sample_weight, meaning, expansion, shift, unit=1.0)
        stream = getattr(self, "_stream", None)
        if stream is not None and stream.w.shape[1] != problem.width:  # two classes that were trained otherwise
            stream = None
        if stream is None and not first:
            stream = Stream.after(problem, self._trained_weights(problem))
        solver = Adagrad(problem, random, self.tol, stream=stream)
        try:
            solver.take_batch()
        finally:  # after Ctrl-C too: the steps that were taken count
            if first:
                learn_columns(self, X)
            self.__dict__.update(self._model_attributes(solver.model(), problem, shift, meaning))
            self.n_iter_ = getattr(self, "n_iter_", 0) + 1
            self._stream, self._alpha = solver.stream(), None
            self.__dict__.pop("certificate_", None)
        return self

    def certify(self, X, y, sample_weight=None, *, max_iter=20):
        """Find a dual point for the model, and with it a certificate. For solvers that have none, or a poor one.

        Takes rows and targets that the model was trained on, and runs dual coordinate ascent for some epochs. The model
        does not change.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array-like
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        max_iter : int, default=20
            Epochs at most. More of them give a better bound.

        Returns
        -------
        certificate : Certificate
            Also kept as `certificate_`.
        """
        check_is_fitted(self)
        check_count("max_iter", max_iter)
        rows, y_checked = self._check_data(X, y)
        validate_data(self, X, reset=False, skip_check_array=True)
        meaning = self._meaning()
        self._check_memory(rows, self._expansion, self._shift, meaning, solver="dual", settled=True)
        rows = rows.astype(self._table.dtype, copy=False)
        problem = self._problem(rows, y_checked, sample_weight, meaning, self._expansion, self._shift)
        random = fixed_random_state(self.random_state)
        w = self._trained_weights(problem)
        margins = problem.margins(w)
        model_norm2 = problem.per_problem(squared_norms(w)[: problem.n_outputs])
        primal = problem.primal(margins, model_norm2)
        solver = Dual(problem, random, self.tol, dual_start(problem, margins))
        train(solver, tol=self.tol, max_iter=max_iter)
        alpha, norm2 = solver.point()
        in_cells = None
        if problem.cells:
            in_cells = problem.weight_norms_in_cells(w), solver.in_cells()[1]
        model = Trained(w, "features", margins, model_norm2)
        self.certificate_ = certify(problem, primal, model, alpha, norm2, random, in_cells)
        return self.certificate_

    def _trained_weights(self, problem):
        """The model as weights of features, for each output that is trained."""
        return self._weights()

    def _weights(self):
        """The model as weights of features."""
        return self._expansion.to_weights(self._table.copy(), self._cells)

    @property
    def _most_epochs(self):
        """What `max_iter` says: infinity for -1."""
        return inf if self.max_iter == -1 else self.max_iter

    @property
    def n_cells_(self):
        """How many cells each partition has."""
        check_is_fitted(self)
        return 1 if self._cells is None else max(len(partition.by) for partition in self._cells.partitions)

    @property
    def axes_(self):
        """The axes that `n_axes` asked for, [n_axes, n_features]."""
        if not isinstance(getattr(self, "_shift", None), Rotation):
            raise AttributeError(f"this {type(self).__name__} has no principal axes")
        return self._shift.axes.T

    @property
    def support_(self):
        """The rows with a nonzero alpha, in the numbering of the rows that were given to `fit`."""
        return self._known_support()[0]

    @property
    def n_support_(self):
        """How many of them there are."""
        return self._known_support()[1]

    def _known_support(self):
        check_is_fitted(self)
        if self._support is None:
            raise AttributeError(
                f"this {type(self).__name__} has no support vectors: those are rows of a dual point, which solver="
                '"dual" and "pegasos" have after fit or a whole fit_stream, and "adagrad" and partial_fit never have; '
                "model files of versions 1 and 2 do not keep them"
            )
        return self._support

    @property
    def _cells(self):
        return self._shift if isinstance(self._shift, Cells) else None

    # Prediction.

    def _outputs(self, X):
        """f_k(x) of each row: [n_rows, K]."""
        if not hasattr(self, "_table"):
            check_is_fitted(self)
        look = look_at(X, self)
        rows = X if look is not None else check_rows(X, estimator=self)
        # Few rows are for one thread in any case: how many there may be takes joblib a while to tell.
        n_jobs = check_jobs(self.n_jobs) if rows.shape[0] > LEAST else 1
        try:
            return outputs(rows, self, self._n_tables, n_jobs, look)
        except NotPlain:
            return outputs(check_rows(X, estimator=self), self, self._n_tables, n_jobs)

    # The model in the user's terms.

    def _coefficients(self):
        """The weights of the features of the shifted rows, in the order of the user's columns: [K, n_slots]."""
        check_is_fitted(self)
        weights = self._weights()[:, : self._n_tables]
        if self._cells is not None:
            parts = [in_user_order(self._expansion, weights[slots], place) for slots, place in self._cells.places()]
            return np.ascontiguousarray(np.concatenate(parts).T)
        place = None if self._shift is None else self._shift.place
        return np.ascontiguousarray(in_user_order(self._expansion, weights, place).T)

    @property
    def column_importance_(self):
        """The share of |w|^2 in monomials with each of the user's columns."""
        check_is_fitted(self)
        weights = self._weights()[:, : self._n_tables]
        weights /= max(weights.max(), -weights.min()) or 1.0  # so that squares are neither too large nor too small
        if self._cells is not None:
            importance = np.zeros(self.n_features_in_)
            for (slots, place), columns in zip(self._cells.places(), self._cells.columns(), strict=True):
                importance[columns] += column_shares(self._expansion, weights[slots])[place]
        else:
            importance = column_shares(self._expansion, weights)
            if isinstance(self._shift, Rotation):
                importance = self._shift.axes**2 @ importance
            elif self._shift is not None and self._shift.place is not None:
                importance = importance[self._shift.place]
        total = importance.sum()
        return importance / total if total > 0 else importance

    def _top_monomials(self, k, outputs, names):
        """A table for each of some outputs."""
        check_is_fitted(self)
        check_count("k", k)
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        elif len(names := [names] if isinstance(names, str) else list(names)) != self.n_features_in_:
            raise ValueError(f"feature_names has {len(names)} names; the model has {self.n_features_in_} columns")
        weights = self._weights()
        if self._cells is not None:
            args = self._cells, names, self._sample, int(k)
            return [strongest_in_cells(self._expansion, weights[:, j], *args) for j in outputs]
        if isinstance(self._shift, Rotation):
            names = [f"axis{j}" for j in range(self._expansion.n_columns)]
        else:
            names = [shifted_name(name, by) for name, by in zip(names, self.shift_, strict=True)]
        place = None if self._shift is None else self._shift.place
        return [strongest(self._expansion, weights[:, j], place, names, self._sample, int(k)) for j in outputs]

    # Help.

    def _check_parameters(self):
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_choice("solver", self.solver, SOLVERS)
        if not (isinstance(self.normalize, str) and self.normalize == "auto"):
            check_normalize(self.normalize)
        self._check_own_parameters()
        _check_max_iter(self.max_iter)
        for name in ("grow", "warm_start"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}")
        if not isinstance(self.verbose, Integral):
            raise ValueError(f"verbose must be an integer; got {self.verbose!r}")
        check_jobs(self.n_jobs)

    def _check_data(self, X, y):
        """(rows as `check_rows` returns them, targets)."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        rows = check_rows(X, empty=False, n_jobs=self.n_jobs)
        y = self._check_y(y)
        check_consistent_length(rows, y)
        return rows, y

    def _check_memory(self, rows, expansion, shift, meaning, solver=None, settled=False):
        """Refuse what does not fit: the tables, what each row takes while it works, the shifted rows.

        With `settled`, the expansion is that of a model that is there already, and no other would do.
        """
        solver = solver or self.solver
        n_outputs = self._n_outputs(meaning)
        n_slots = shift.n_slots if isinstance(shift, Cells) else expansion.n_slots
        n_bytes = table_bytes(n_slots, n_outputs, rows.dtype, solver) + row_bytes(rows, shift, n_outputs, solver)
        outputs = f" for each of {n_outputs} outputs" if n_outputs > 1 else ""
        check_memory(
            n_bytes,
            self.memory_limit,
            f"training with {n_slots} monomials{outputs} on {rows.shape[0]} rows",
            None if settled else lambda limit: self._remedy(rows, expansion.degree, meaning, solver, limit),
        )

    def _remedy(self, rows, degree, meaning, solver, limit):
        """What would fit, in words."""
        n_outputs, solver_ = self._n_outputs(meaning), solver

        def takes(n_slots, moved, n_rows=rows.shape[0], solver=solver_):
            each = ROW_BYTES + OUTPUT_BYTES[solver] * n_outputs
            return table_bytes(n_slots, n_outputs, rows.dtype, solver) + n_rows * each + moved

        return remedy(self, rows, degree, takes, limit)

    def _expand(self, n_columns, degree, gamma):
        known = {"kernel": self.kernel, "coef0": self.coef0, "normalize": self._normalized}
        return Expansion(n_columns, degree=degree, gamma=gamma, **known)

    @property
    def _normalized(self):
        """What normalize="auto" stands for."""
        if isinstance(self.normalize, str) and self.normalize == "auto":
            return isinstance(self.kernel, str) and canonical_kernel(self.kernel) == "gaussian"
        return bool(self.normalize)

    def _auto_degree(self, rows, weight, gamma, n_outputs, solver, shift):
        """What degree="auto" stands for, with these rows and what is done to them, or None."""
        check_memory(0, self.memory_limit, "nothing")
        some = some_rows(rows, weight)
        some = Rows(some) if shift is None else shift.rows(some)

        def fits(degree):
            n_slots = comb(some.n_columns + degree, degree)
            if some.cells is not None:
                n_slots = sum(comb(n + degree, degree) for _, n in some.cells.tables())
            n_bytes = table_bytes(n_slots, n_outputs, rows.dtype, solver)
            if self.memory_limit is None:
                return n_bytes <= BYTES
            return n_bytes + row_bytes(rows, shift, n_outputs, solver) <= self.memory_limit

        return auto_degree(self.kernel, gamma, some, fits)

    def _expand_rows(self, rows, y, sample_weight, meaning, random, solver, compact=True):
        """(the expansion, the shift or the cells) for the first rows that are seen."""
        try:
            return self._choose_expansion(rows, y, sample_weight, meaning, random, solver, compact)
        except TooManyMonomials as refusal:
            if isinstance(self.degree, str):
                raise
            what = self._remedy(rows, self.degree, meaning, solver, limit_of(self.memory_limit))
            raise ValueError(f"{refusal.problem}{what and '; '}{what}") from None

    def _choose_expansion(self, rows, y, sample_weight, meaning, random, solver, compact):
        """The same, where monomials that cannot be numbered are refused without a word on what would help."""
        gamma, degree = resolve_gamma(self.gamma, rows), self.degree
        n_cells, n_outputs = self.n_cells, self._n_outputs(meaning)
        if not (isinstance(n_cells, str) and n_cells == "auto"):
            check_count("n_cells", n_cells)
        check_count("n_partitions", self.n_partitions)
        auto = isinstance(degree, str) and degree == "auto"
        if auto and not isinstance(self.kernel, str):
            auto, degree = False, degree_of(self.kernel)
        if self.n_axes is not None:
            return self._rotate(rows, sample_weight, random, gamma, n_outputs, solver)
        if n_cells == "auto" and canonical_kernel(self.kernel) == "gaussian":
            n_cells = auto_cells(self, rows, y, sample_weight, random)
        if n_cells == 1:
            if auto:
                # A shift depends on the degree only in whether dense rows are walked as such.
                shift = choose_shift(rows, self.shift, self._expand(rows.shape[1], 1, gamma))
                degree = self._auto_degree(rows, sample_weight, gamma, n_outputs, solver, shift)
                if shift is not None and (shift.place is None or is_csr(rows)):
                    return self._expand(rows.shape[1], degree, gamma), shift
            expansion = self._expand(rows.shape[1], degree, gamma)
            return expansion, choose_shift(rows, self.shift, expansion)
        if canonical_kernel(self.kernel) != "gaussian" or not isinstance(self.shift, str) or self.shift != "auto":
            raise ValueError(
                f"n_cells={self.n_cells} shifts the rows of each cell by its centre: that takes the Gaussian kernel "
                f'and shift="auto"; got kernel={self.kernel!r}, shift={self.shift!r}'
            )
        of_cells = partial(self._auto_degree, rows, sample_weight, gamma, n_outputs, solver)
        cells = choose_cells(
            rows,
            n_cells,
            self.n_partitions,
            of_cells if auto else check_degree(degree),
            random,
            compact=compact,
            n_jobs=check_jobs(self.n_jobs),
            memory_limit=self.memory_limit,
        )
        return self._expand(cells.n_columns, cells.degree, gamma), cells

    def _rotate(self, rows, sample_weight, random, gamma, n_outputs, solver):
        """(the expansion, the rotation) for the first rows that are seen."""
        check_count("n_axes", self.n_axes)
        by_hand = not isinstance(self.shift, str) or self.shift != "auto"
        if canonical_kernel(self.kernel) != "gaussian" or by_hand or self.n_cells != 1:
            raise ValueError(
                f"n_axes={self.n_axes} rotates rows about their mean: that takes the Gaussian kernel, "
                f'shift="auto" and no cells; got kernel={self.kernel!r}, shift={self.shift!r}, n_cells={self.n_cells}'
            )
        rotation, degree = choose_rotation(rows, self.n_axes, random), self.degree
        if isinstance(degree, str) and degree == "auto":
            degree = self._auto_degree(rows, sample_weight, gamma, n_outputs, solver, rotation)
        return self._expand(rotation.axes.shape[1], degree, gamma), rotation

    def _problem(self, rows, y, sample_weight, meaning, expansion, shift, unit=None, walk_dense=None):
        """Shifted rows, their targets and weights; rows of weight 0 are left out."""
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        targets, weight, favour = self._encode_y(y, meaning, rows, sample_weight)
        if weight is not None and not weight.all():
            used = weight > 0
            if not used.any():
                raise ValueError("Sample weights must contain at least one non-zero number.")
            used = np.flatnonzero(used)
            rows, targets, weight = rows[used], targets[used], weight[used]
        else:
            used = None
        n_jobs = check_jobs(self.n_jobs)
        given, every = rows, -(-rows.shape[0] // SAMPLE)
        rows = Rows(rows) if shift is None else shift.rows(rows, n_jobs)
        loss = self._loss(meaning)
        problem = Problem(rows, targets, weight, expansion, loss, float(self.C), n_jobs, unit, favour, walk_dense)
        problem.used, problem.given = used, given
        if isinstance(shift, Rotation):
            problem.whole = given
        if walk_dense is not None:  # of later chunks of a stream nobody asks for a sample
            return problem
        if isinstance(shift, Cells):
            problem.sample = Sample.of(shift.rows(given[::every].copy()))
        else:
            X = problem.rows.X
            problem.sample = X.every(every) if isinstance(X, Csr) else X[::every].copy()
        return problem

    def _warm(self, problem, shift):
        """Where the last fit ended, as far as that is of use for this problem: arguments of a solver."""
        if not self.warm_start or not hasattr(self, "_table"):
            return {}
        if self.solver == "adagrad":
            stream = self._stream
            if stream is None or stream.w.dtype != problem.dtype or not _same_shift(shift, self._shift):
                return {}
            same = self._expansion.__reduce__() == problem.expansion.__reduce__()
            return {"stream": stream.copy()} if same and stream.w.shape[1] == problem.width else {}
        alpha = self._alpha
        if alpha is None or alpha.shape != (problem.n_rows, problem.n_outputs):
            return {}
        return {"alpha": problem.feasible(alpha)}

    def _model_attributes(self, table, problem, shift, meaning):
        """Everything that prediction needs."""
        expansion, cells = problem.expansion, problem.rows.cells
        shift_ = None if cells is not None else np.zeros(expansion.n_columns) if shift is None else shift.by
        return {
            **meaning,
            "n_features_in_": expansion.n_columns if shift is None else shift.n_features,
            "degree_": expansion.degree,
            "gamma_": expansion.gamma,
            "n_slots_": problem.n_slots,
            "shift_": shift_ if cells is None else [partition.by for partition in cells.partitions],
            "_table": self._to_model(table, meaning),
            "_expansion": expansion,
            "_shift": shift,
            "_walk_dense": problem.rows.core.walk_dense,
            "_sample": problem.sample,
            "_support": None,
        }

    def _find_support(self, problem, alpha, meaning):
        """(`support_`, `n_support_`) of a dual point; None where there is none."""
        if alpha is None:
            return None
        rows = np.flatnonzero(alpha if alpha.shape[1] == 1 else alpha.any(axis=1))
        counts = self._count_support(problem.y[rows], alpha, meaning)
        rows = rows if problem.used is None else problem.used[rows]
        return rows.astype(np.int32), np.asarray(counts, dtype=np.int32)

    def _grown(self, X, rows):
        """The expansion and shift for a batch, which may have more columns when `grow` is set."""
        more = rows.shape[1] - self.n_features_in_
        if not (self.grow and more > 0):
            validate_data(self, X, reset=False, skip_check_array=True)
            return self._expansion, self._shift
        if hasattr(self, "feature_names_in_"):
            raise ValueError("a model with named columns cannot grow")
        if self._cells is not None or isinstance(self._shift, Rotation):
            raise ValueError("a model with cells or along principal axes cannot grow")
        shift = None if self._shift is None else self._shift.grow(rows.shape[1])
        return self._expansion.grow(rows.shape[1]), shift

    def _warn_underflow(self, n_rows, stacklevel):
        n_underflowed = self.certificate_.n_underflowed
        if n_underflowed:
            warnings.warn(
                f"{n_underflowed} of {n_rows} rows are so far from the origin that exp(-gamma |x|^2) is 0 in "
                f"{self._table.dtype}: they have no features. Scale the data, or use a smaller gamma (it is "
                f"{self.gamma_:.4g})",
                RuntimeWarning,
                stacklevel=stacklevel + 1,
            )

    _looks = True  # whether a fitted model is looked at for what was cut

    def _warn_of_cut(self, problem, margins, stacklevel):
        text = warning_of(problem, margins) if self._looks else None
        if text:
            warnings.warn(text, ApproximationWarning, stacklevel=stacklevel + 1)

    def _warn(self, problem, outcome):
        self._warn_underflow(problem.n_rows, 4 + FRAMES)
        if outcome.converged:
            return
        certificate = self.certificate_
        if isnan(certificate.dual):
            state = f"the objective {certificate.primal:.4g} still fell by more than tol={self.tol:g} an epoch"
        else:
            gap = max(part.relative_gap for part in certificate.parts or [certificate])
            state = f"the relative gap is {gap:.2g}, more than tol={self.tol:g}"
        warnings.warn(
            f"Training stopped after {outcome.n_iter} epochs, when {state}. Raise max_iter or tol, or lower C (it is "
            f'{self.C:g}); for large C try solver="adagrad" or {self._smoother}',
            ConvergenceWarning,
            stacklevel=4 + FRAMES,
        )

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_table")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def table_bytes(n_slots, n_outputs, dtype, solver):
    """The bytes of a solver's tables."""
    return TABLES[solver] * n_slots * padded(n_outputs, dtype) * dtype.itemsize


def row_bytes(rows, shift, n_outputs, solver):
    """What else training takes: for each row while it works, and for the shifted rows."""
    n_bytes = rows.shape[0] * (ROW_BYTES + OUTPUT_BYTES[solver] * n_outputs)
    return n_bytes if shift is None else n_bytes + shift.bytes(rows)


def _check_max_iter(value):
    if isinstance(value, bool) or not isinstance(value, Integral) or (value < 1 and value != -1):
        raise ValueError(f"max_iter must be an integer > 0, or -1 for no limit; got {value!r}")


def check_choice(name, value, allowed):
    """Refuse what is not one of some names."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def _same_shift(one, other):
    if one is None or other is None or isinstance(one, Cells) != isinstance(other, Cells):
        return one is other
    if isinstance(one, Cells):
        return one.same(other)
    if isinstance(one, Rotation) or isinstance(other, Rotation):
        both = isinstance(one, Rotation) and isinstance(other, Rotation)
        return both and np.array_equal(one.mean, other.mean) and np.array_equal(one.axes, other.axes)
    return np.array_equal(one.by, other.by) and np.array_equal(one.place, other.place)
