"""TaylorSVC: a Gaussian-kernel SVM trained on Taylor features that are walked, never stored."""

import warnings
from math import isnan
from numbers import Integral

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._dual import Dual, dual_start
from ._expansion import Expansion, _positive, resolve_gamma
from ._loss import LOSSES
from ._memory import check_memory
from ._monomials import in_user_order, shifted_name, strongest
from ._observe import FRAMES, CallbackSupportMixin, Observer, with_callbacks
from ._primal import Adagrad, Stream
from ._problem import Problem, squared_norm
from ._rows import Rows, check_rows, dot_rows
from ._shift import CHUNK, choose_shift
from ._train import SOLVERS, train
from .certificate import certify, interrupted_certificate

# Tables of n_slots numbers that a solver holds, the copy of the last whole epoch's model included.
TABLES = {"dual": 2, "pegasos": 4, "adagrad": 4}
SAMPLE = 2**12  # rows that are kept to tell how often a monomial occurs


def _check_count(name, value):
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer > 0; got {value!r}")


def _check_labels(targets, classes):
    unknown = np.setdiff1d(targets, classes)
    if len(unknown):
        raise ValueError(f"y has the label {unknown[0]!r}, which is not one of the classes {classes!r}")


def _same_shift(one, other):
    if one is None or other is None:
        return one is other
    return np.array_equal(one.by, other.by) and np.array_equal(one.place, other.place)


def _has_probabilities(estimator):
    if estimator.loss != "log_loss":
        raise AttributeError(f"probability estimates are not available for loss={estimator.loss!r}")
    return True


class TaylorSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Support vector classifier with the Gaussian kernel, for data of many rows.

    The kernel's Taylor series is cut after degree r, which leaves an inner product of monomials of the columns. They
    are walked inside each training step and never stored: beside X, training takes some tables of C(d + r, r) numbers
    and about 170 bytes a row, and a row with m nonzeros costs C(m + r, r) operations an epoch. Every fitted model has a
    certificate of how far its objective can be from that of the exact kernel.

    `C`, `gamma`, `class_weight` and `tol` mean what they mean in `sklearn.svm.SVC`. There is no separate bias: the
    constant monomial serves as one, and is regularised like the others. For now there are two classes.

    Parameters
    ----------
    degree : int, default=3
        The degree r at which the kernel's series is cut.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVC`, of the data as given.
    kernel : {"gaussian", "exponential", "polynomial"} or sequence of float, default="gaussian"
        See `TaylorFeatures`.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    C : float, default=1.0
        The weight of the losses against that of the regulariser: the objective is 1/2 |w|^2 + C sum_i loss_i.
    loss : {"hinge", "squared_hinge", "log_loss"}, default="hinge"
        "log_loss" makes it a kernel logistic regression, with `predict_proba`. For probabilities with the other losses
        use `sklearn.calibration.CalibratedClassifierCV`.
    solver : {"dual", "pegasos", "adagrad"}, default="dual"
        "dual" is dual coordinate ascent, which stops when the gap between its primal and dual objective is small
        enough. "pegasos" is stochastic gradient descent with averaging, whose gap closes slowly. "adagrad" has a step
        size for each monomial: the quickest to a good model when C is large, but without a dual point.
    shift : {"auto"}, None or array-like of shape (n_features,), default="auto"
        What is subtracted from each row before it is expanded. The Gaussian kernel does not change by it, and the
        approximation gets better. "auto" takes the most frequent value of each column where that makes it sparse, and
        its mean otherwise; kernels that are not shift invariant are then not shifted.
    class_weight : dict or "balanced", default=None
        C is multiplied by the weight of a row's class.
    tol : float, default=1e-3
        Training stops when the gap is at most tol times the primal objective. "adagrad", which has no gap, stops when
        the objective falls by less than this share in each of two epochs.
    max_iter : int, default=1000
        Epochs at most.
    grow : bool, default=False
        Whether `partial_fit` accepts rows with more columns than before.
    memory_limit : int, default=None
        Bytes that training may take beyond X. None stands for what the machine has free. What needs more is refused
        before anything is allocated.
    n_jobs : int, default=None
        Threads that compute margins of many rows (prediction, and the objective during training). Results do not depend
        on it. None is one; -1 is as many as there are cores.
    warm_start : bool, default=False
        Whether `fit` begins where the last one ended, when it had as many rows: with another C, for example.
    random_state : int, RandomState or None, default=None
        The order in which rows are visited. Equal seeds give equal models, bit for bit.
    verbose : int, default=0
        1 shows a progress bar; with tqdm where that is installed (`pip install taylorkern[progress]`).

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, when they have names.
    degree_ : int
        The degree.
    gamma_ : float
        The bandwidth as a number.
    n_slots_ : int
        The number of monomials, C(n_features + r, r).
    shift_ : ndarray of shape (n_features_in_,)
        What was subtracted from each column.
    coef_ : ndarray of shape (1, n_slots_)
        The weights of the features that `TaylorFeatures` makes of the shifted rows; built when asked for.
    n_iter_ : int
        The number of epochs.
    history_ : dict of ndarray
        Per epoch: "epoch", "seconds" since the start, "primal" and "dual" objective, "active" rows, and "primal_seen",
        which has each row's margin as it was when the row was visited. The true primal objective takes a pass of its
        own; where that was not due it is NaN.
    certificate_ : Certificate
        How far the model can be from the exact Gaussian SVM; prints as a table.
    interrupted_ : bool
        Whether training ended by Ctrl-C. The model is then that of the last whole epoch.

    See Also
    --------
    sklearn.svm.SVC : The exact kernel, for some thousands of rows.
    TaylorFeatures : The features by themselves.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from taylorkern import TaylorSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TaylorSVC(degree=3, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97
    True
    >>> low, high = model.certificate_.exact_interval
    >>> low < high
    True

    Probabilities come with the log loss, or from scikit-learn's calibration:

    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> TaylorSVC(loss="log_loss", random_state=0).fit(scale(X), y).predict_proba(scale(X)).shape
    (569, 2)
    >>> CalibratedClassifierCV(model, cv=3).fit(scale(X), y).predict_proba(scale(X)).shape
    (569, 2)
    """

    def __init__(
        self,
        *,
        degree=3,
        gamma="scale",
        kernel="gaussian",
        coef0=1.0,
        C=1.0,
        loss="hinge",
        solver="dual",
        shift="auto",
        class_weight=None,
        tol=1e-3,
        max_iter=1000,
        grow=False,
        memory_limit=None,
        n_jobs=None,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        self.degree = degree
        self.gamma = gamma
        self.kernel = kernel
        self.coef0 = coef0
        self.C = C
        self.loss = loss
        self.solver = solver
        self.shift = shift
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.grow = grow
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # Training.

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on rows X with labels y.

        After Ctrl-C the estimator holds the model of the last whole epoch, and KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. CSR matrices with sorted indices and arrays in C order, of float32 or float64, are used as they
            are, unless they are shifted.
        y : array-like of shape (n_samples,)
            Two different labels of any kind.
        sample_weight : array-like of shape (n_samples,), default=None
            C is multiplied by the weight of a row.

        Returns
        -------
        self : TaylorSVC
        """
        self._check_parameters()
        rows, targets = self._check_data(X, y)
        classes = self._check_classes(np.unique(targets))
        expansion = self._expand(rows.shape[1], resolve_gamma(self.gamma, rows))
        shift = choose_shift(rows, self.shift, expansion)
        self._check_memory(rows, expansion, shift)
        problem = self._problem(rows, targets, sample_weight, classes, expansion, shift)
        random = check_random_state(self.random_state)
        solver = SOLVERS[self.solver](problem, random, self.tol, **self._warm(problem, shift))

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        observer = Observer(
            self,
            {"X": X, "y": y, "metadata": metadata},
            lambda: self._model_attributes(solver.model().copy(), problem, shift, classes),
        )
        with observer.watching():
            outcome = train(solver, tol=self.tol, max_iter=self.max_iter, observer=observer)
        if outcome.n_iter == 0:
            raise KeyboardInterrupt
        alpha, norm2 = solver.point()
        certificate = interrupted_certificate(problem, outcome.record)
        if not outcome.interrupted:
            try:
                certificate = certify(problem, outcome.record.primal, alpha, norm2, random)
            except KeyboardInterrupt:
                outcome = outcome._replace(interrupted=True)
        validate_data(self, X, skip_check_array=True)  # this late, so that a failed fit changes nothing
        self.__dict__.update(self._model_attributes(solver.model(), problem, shift, classes))
        self.n_iter_ = outcome.n_iter
        self.history_ = observer.history(outcome.record)
        self.certificate_ = certificate
        self.interrupted_ = outcome.interrupted
        self._alpha = alpha if self.warm_start else None
        self._stream = solver.stream() if self.warm_start and self.solver == "adagrad" else None
        if outcome.interrupted:
            raise KeyboardInterrupt
        self._warn(problem, outcome)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Train on a batch of rows, whatever the solver by steps of "adagrad": for data that arrives in pieces.

        Bandwidth, shift and the order of columns are those of the first batch, and stay. C has the meaning that it has
        for all the rows seen so far as one training set, so that rows which come again count again. The model is the
        average of the iterates over at least the later half of the rows seen. There is no certificate; `certify` makes
        one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows. More columns than before are an error, unless `grow` is set.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (2,), default=None
            Both labels; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : TaylorSVC
        """
        self._check_parameters()
        first = not hasattr(self, "_table")
        rows, targets = self._check_data(X, y)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            classes = self._check_classes(np.unique(classes))
            expansion = self._expand(rows.shape[1], resolve_gamma(self.gamma, rows))
            shift = choose_shift(rows, self.shift, expansion)
        else:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
                )
            classes = self.classes_
            expansion, shift = self._grown(X, rows)
        _check_labels(targets, classes)
        if not first:
            rows = rows.astype(self._table.dtype, copy=False)
        self._check_memory(rows, expansion, shift, tables=TABLES["adagrad"])
        problem = self._problem(rows, targets, sample_weight, classes, expansion, shift, unit=1.0)
        random = check_random_state(self.random_state)
        stream = getattr(self, "_stream", None)
        if stream is None and not first:
            stream = Stream.after(problem, self._weights())
        solver = Adagrad(problem, random, self.tol, stream=stream)
        try:
            solver.take_batch()
        finally:  # after Ctrl-C too: the steps that were taken count
            if first:
                validate_data(self, X, skip_check_array=True)
            self.__dict__.update(self._model_attributes(solver.model(), problem, shift, classes))
            self.n_iter_ = getattr(self, "n_iter_", 0) + 1
            self._stream, self._alpha = solver.stream(), None
            self.__dict__.pop("certificate_", None)
        return self

    def certify(self, X, y, sample_weight=None, *, max_iter=20):
        """Find a dual point for the model, and with it a certificate. For solvers that have none, or a poor one.

        Takes rows and labels that the model was trained on, and runs dual coordinate ascent for some epochs. The model
        does not change.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels.
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
        _check_count("max_iter", max_iter)
        rows, targets = self._check_data(X, y)
        validate_data(self, X, reset=False, skip_check_array=True)
        _check_labels(targets, self.classes_)
        self._check_memory(rows, self._expansion, self._shift, tables=TABLES["dual"])
        problem = self._problem(
            rows.astype(self._table.dtype, copy=False),
            targets,
            sample_weight,
            self.classes_,
            self._expansion,
            self._shift,
        )
        random = check_random_state(self.random_state)
        margins = problem.margins(self._table, self._expansion.margin)
        primal = problem.primal(margins, squared_norm(self._expansion.to_weights(self._table.copy())))
        solver = Dual(problem, random, self.tol, dual_start(problem, margins))
        train(solver, tol=self.tol, max_iter=max_iter)
        alpha, norm2 = solver.point()
        self.certificate_ = certify(problem, primal, alpha, norm2, random)
        return self.certificate_

    # Prediction.

    def decision_function(self, X):
        """f(x) of each row: positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = check_rows(X, estimator=self)
        if self._shift is None and X.dtype == self._table.dtype:
            return self._values(X)
        values = np.empty(X.shape[0], dtype=self._table.dtype)
        for first in range(0, X.shape[0], CHUNK):
            part = X[first : first + CHUNK].astype(self._table.dtype, copy=False)
            values[first : first + CHUNK] = self._values(part if self._shift is None else self._shift(part))
        return values

    def predict(self, X):
        """The label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(np.intp)]

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """The probability of each class; with loss="log_loss" only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
        """
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """The logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, 2)
        """
        return -np.logaddexp(0, np.multiply.outer(self.decision_function(X), [1, -1]))

    # The model in the user's terms.

    @property
    def coef_(self):
        """The weights of the features of the shifted rows, in the order of the user's columns."""
        check_is_fitted(self)
        place = None if self._shift is None else self._shift.place
        return in_user_order(self._expansion, self._weights(), place)[None, :]

    def top_monomials(self, k=20):
        """The strongest interactions between columns.

        Parameters
        ----------
        k : int, default=20
            How many.

        Returns
        -------
        monomials : list of Monomial
            Named tuples (name, weight, share, powers), strongest first; the list prints as a table. `weight` is the
            entry of `coef_`; `share` is in what part of the training rows the monomial is not zero.

        Examples
        --------
        >>> import numpy as np
        >>> from taylorkern import TaylorSVC
        >>> X = np.random.default_rng(0).choice([0.0, 1.0], size=(300, 4))
        >>> model = TaylorSVC(degree=2, gamma=0.5, shift=None, random_state=0).fit(X, X[:, 0] * X[:, 2])
        >>> print(model.top_monomials(1)[0].name)
        x0 * x2
        """
        check_is_fitted(self)
        _check_count("k", k)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        names = [shifted_name(name, by) for name, by in zip(names, self.shift_, strict=True)]
        place = None if self._shift is None else self._shift.place
        return strongest(self._expansion, self._weights(), place, names, self._sample, int(k))

    # Help.

    def _check_parameters(self):
        _positive("C", self.C)
        _positive("tol", self.tol)
        for name, allowed in (("loss", LOSSES), ("solver", SOLVERS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
        _check_count("max_iter", self.max_iter)
        for name in ("grow", "warm_start"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}")
        if not isinstance(self.verbose, Integral):
            raise ValueError(f"verbose must be an integer; got {self.verbose!r}")
        if self.n_jobs is not None and not isinstance(self.n_jobs, Integral):
            raise ValueError(f"n_jobs must be an integer or None; got {self.n_jobs!r}")

    def _check_data(self, X, y):
        """(rows as `check_rows` returns them, labels)."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        rows = check_rows(X, empty=False)
        y = column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        return rows, y

    def _check_classes(self, classes):
        if len(classes) == 1:
            raise ValueError(f"The number of classes has to be greater than one; got 1 class: {classes[0]!r}")
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({len(classes)} classes: {classes[0]!r}, {classes[1]!r}, {classes[2]!r}...)"
            )
        return classes

    def _check_memory(self, rows, expansion, shift, tables=None):
        """Refuse what does not fit: the tables, some twenty numbers for each row while it works, the shifted rows."""
        n_tables = TABLES[self.solver] if tables is None else tables
        n_bytes = n_tables * expansion.n_slots * rows.dtype.itemsize + rows.shape[0] * 170
        if shift is not None:
            n_bytes += shift.bytes(rows)
        check_memory(n_bytes, self.memory_limit, f"training with {expansion.n_slots} monomials on {rows.shape[0]} rows")

    def _expand(self, n_columns, gamma):
        return Expansion(n_columns, degree=self.degree, gamma=gamma, kernel=self.kernel, coef0=self.coef0)

    def _problem(self, rows, targets, sample_weight, classes, expansion, shift, unit=None):
        """Shifted rows, labels -1 and 1, weights; rows of weight 0 are left out."""
        weight = None
        if sample_weight is not None or self.class_weight is not None:
            weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
            of_class = compute_class_weight(self.class_weight, classes=classes, y=targets)
            if not (np.isfinite(of_class).all() and (of_class >= 0).all()):
                raise ValueError(f"class_weight must hold finite numbers >= 0; got {self.class_weight!r}")
            weight = weight * of_class[np.searchsorted(classes, targets)]
        y = np.where(targets == classes[1], 1, -1).astype(np.int8)
        if weight is not None and not weight.all():
            used = weight > 0
            if not used.any():
                raise ValueError("Sample weights must contain at least one non-zero number.")
            rows, y, weight = rows[used], y[used], weight[used]
        if shift is not None:
            rows = shift(rows)
        n_jobs = effective_n_jobs(self.n_jobs)
        return Problem(rows, y, weight, expansion, LOSSES[self.loss], float(self.C), n_jobs, unit)

    def _warm(self, problem, shift):
        """Where the last fit ended, as far as that is of use for this problem: arguments of a solver."""
        if not self.warm_start or not hasattr(self, "_table"):
            return {}
        if self.solver == "adagrad":
            stream = self._stream
            if stream is None or stream.w.dtype != problem.dtype or not _same_shift(shift, self._shift):
                return {}
            same = self._expansion.__reduce__() == problem.expansion.__reduce__()
            return {"stream": stream.copy()} if same else {}
        alpha = self._alpha
        if alpha is None or len(alpha) != problem.n_rows:
            return {}
        weight = 1.0 if problem.weight is None else problem.weight
        return {"alpha": np.minimum(alpha, weight) if problem.loss.lipschitz else alpha.copy()}

    def _model_attributes(self, table, problem, shift, classes):
        """Everything that prediction needs."""
        expansion = problem.expansion
        step = -(-problem.n_rows // SAMPLE)
        return {
            "classes_": classes,
            "n_features_in_": expansion.n_columns,
            "degree_": expansion.degree,
            "gamma_": expansion.gamma,
            "n_slots_": expansion.n_slots,
            "shift_": np.zeros(expansion.n_columns) if shift is None else shift.by,
            "_table": table,
            "_expansion": expansion,
            "_shift": shift,
            "_sample": problem.rows.X[::step].copy(),
        }

    def _grown(self, X, rows):
        """The expansion and shift for a batch, which may have more columns when `grow` is set."""
        more = rows.shape[1] - self.n_features_in_
        if not (self.grow and more > 0):
            validate_data(self, X, reset=False, skip_check_array=True)
            return self._expansion, self._shift
        if hasattr(self, "feature_names_in_"):
            raise ValueError("a model with named columns cannot grow")
        shift = None if self._shift is None else self._shift.grow(rows.shape[1])
        return self._expansion.grow(rows.shape[1]), shift

    def _values(self, X):
        return dot_rows(Rows(X), self._expansion, self._expansion.margin, self._table, effective_n_jobs(self.n_jobs))

    def _weights(self):
        return self._expansion.to_weights(self._table.copy())

    def _warn(self, problem, outcome):
        n_underflowed = self.certificate_.n_underflowed
        if n_underflowed:
            warnings.warn(
                f"{n_underflowed} of {problem.n_rows} rows are so far from the origin that exp(-gamma |x|^2) is 0 in "
                f"{problem.dtype}: they have no features. Scale the data, or use a smaller gamma (it is "
                f"{self.gamma_:.4g})",
                RuntimeWarning,
                stacklevel=3 + FRAMES,
            )
        if outcome.converged:
            return
        record = outcome.record
        if isnan(record.dual):
            state = f"the objective {record.primal:.4g} still fell by more than tol={self.tol:g} an epoch"
        else:
            gap = (record.primal - record.dual) / record.primal
            state = f"the relative gap is {gap:.2g}, more than tol={self.tol:g}"
        warnings.warn(
            f"Training stopped after {outcome.n_iter} epochs, when {state}. Raise max_iter or tol, or lower C (it is "
            f'{self.C:g}); for large C try solver="adagrad" or loss="squared_hinge"',
            ConvergenceWarning,
            stacklevel=3 + FRAMES,
        )

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_table")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
