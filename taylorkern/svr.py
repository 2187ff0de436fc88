"""TaylorSVR: Gaussian-kernel regression on Taylor features, of one target or several."""

from math import inf
from numbers import Real

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ._model.estimator import TaylorModel, check_choice
from ._model.observe import with_callbacks
from ._stream.fit import StreamFit
from ._train.loss import NUMBER_LOSSES, regression_loss


class TaylorSVR(RegressorMixin, TaylorModel):
    """Support vector regression and ridge regression with the Gaussian kernel, for data of many rows.

    As `TaylorSVC` does, it expands the kernel into monomials of the columns up to degree r, which are walked in each
    training step and never stored, and every fitted model has a certificate of how far its objective can be from that
    of the exact kernel. Several targets are trained in the same pass over the rows.

    There is no separate bias. Targets are centred instead (see `center`), and the constant monomial, regularised like
    the others, does the rest.

    Parameters
    ----------
    degree : int or "auto", default="auto"
        The degree r at which the kernel's series is cut; see `TaylorSVC`.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVR`, of the data as given.
    kernel : {"gaussian", "rbf", "exponential", "polynomial", "poly"} or sequence of float, default="gaussian"
        See `TaylorFeatures`.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    normalize : {"auto"} or bool, default="auto"
        Whether each row's features are divided by their norm; see `TaylorSVC`.
    C : float, default=1.0
        The weight of the losses against that of the regulariser: the objective is 1/2 |w|^2 + C sum_i loss_i. For
        loss="squared_error" it is `sklearn.kernel_ridge.KernelRidge` with alpha = 1 / (2 C).
    epsilon : float, default=0.1
        Errors up to this cost nothing; loss="squared_error" ignores it.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "squared_error"}, default="epsilon_insensitive"
        With e = |f(x) - y|: max(0, e - epsilon), its square, or e^2.
    solver : {"dual", "pegasos", "adagrad"}, default="dual"
        See `TaylorSVC`.
    shift : {"auto"}, None or array-like of shape (n_features,), default="auto"
        What is subtracted from each row before it is expanded; see `TaylorSVC`.
    n_cells, n_partitions : int, default=1
        Cells, and how many times rows are divided into them; see `TaylorSVC`.
    n_axes : int, default=None
        The number of principal axes; see `TaylorSVC`.
    center : bool, default=True
        Whether the (weighted) mean of the targets is subtracted before training, and added to predictions.
    tol : float, default=1e-3
        Training stops when the gap is at most tol times the primal objective, for each target. "adagrad", which has no
        gap, stops when the objective falls by less than this share in each of two epochs.
    max_iter : int, default=1000
        Epochs at most; -1 means no limit.
    grow : bool, default=False
        Whether `partial_fit` accepts rows with more columns than before.
    memory_limit : int, default=None
        Bytes that training may take beyond X. None stands for what the machine has free. What needs more is refused
        before anything is allocated.
    n_jobs : int, default=None
        Threads for training and prediction, as far as there is work for them. Results do not depend on it, bit for bit.
        None is one; -1 is as many as there are cores.
    warm_start : bool, default=False
        Whether `fit` begins where the last one ended, when it had as many rows: with another C, for example.
    random_state : int, RandomState or None, default=None
        The order in which rows are visited. Equal seeds give equal models, bit for bit. None stands for a fixed order:
        equal data give equal models; other seeds give other orders.
    verbose : int, default=0
        1 shows a progress bar; with tqdm where that is installed (`pip install taylorkern[progress]`).

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, when they have names.
    degree_ : int
        The degree.
    gamma_ : float
        The bandwidth as a number.
    n_slots_ : int
        The number of monomials: C(n_features + r, r), or C(n_axes + r, r), or the sum over all cells.
    shift_ : ndarray of shape (n_features_in_,)
        What was subtracted from each column. With cells: for each partition an array of shape (cells, n_features_in_).
    offset_ : float or ndarray of shape (n_targets,)
        What was subtracted from the targets, and is added to predictions.
    monomial_coef_ : ndarray of shape (n_slots_,) or (n_targets, n_slots_)
        The weights of the features that `TaylorFeatures` makes of the shifted rows, with the same `normalize`; built
        when asked for.
    support_ : ndarray of int32 of shape (n_support,)
        After "dual" and "pegasos": the numbers, rising, of the training rows with a nonzero alpha, for any of several
        targets. No other row has a part in the model. Rows of weight 0, which are left out, count in the numbering.
    n_support_ : ndarray of int32 of shape (1,)
        How many they are.
    column_importance_ : ndarray of shape (n_features_in_,)
        One number >= 0 for each column: the share of |w|^2, over all targets and cells, that lies in monomials with it.
        Each w_a^2 is divided among the columns of its monomial in proportion to their powers; the constant one is left
        out. They add up to 1, unless all are 0. As with any weights, columns of another scale have another importance.
        For `RFE` and `SelectFromModel`: `importance_getter="column_importance_"`.
    n_iter_ : int
        The number of epochs.
    history_ : dict of ndarray
        See `TaylorSVC`.
    certificate_ : Certificate
        How far the model can be from the one with the exact Gaussian kernel, for the centred targets; prints as a
        table. With several targets, `certificate_.parts` has one for each of them; with cells, `certificate_.cells`
        one for each cell.
    interrupted_ : bool
        Whether training ended by Ctrl-C. The model is then the one that it had come to (solver="pegasos": that of the
        last whole epoch); `n_iter_`, `history_` and `certificate_` tell of whole epochs.
    waiting_ : float
        After `fit_stream`: for which share of the time training has waited for rows.

    See Also
    --------
    sklearn.svm.SVR : The exact kernel, for some thousands of rows.
    sklearn.kernel_ridge.KernelRidge : The same for the squared error.
    TaylorSVC : Classification.

    Examples
    --------
    >>> import numpy as np
    >>> from taylorkern import TaylorSVR
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    >>> model = TaylorSVR(degree=5, gamma=1.0, C=10.0, loss="squared_error", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        *,
        degree="auto",
        gamma="scale",
        kernel="gaussian",
        coef0=1.0,
        normalize="auto",
        C=1.0,
        epsilon=0.1,
        loss="epsilon_insensitive",
        solver="dual",
        shift="auto",
        n_cells=1,
        n_partitions=1,
        n_axes=None,
        center=True,
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
        self.normalize = normalize
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.solver = solver
        self.shift = shift
        self.n_cells = n_cells
        self.n_partitions = n_partitions
        self.n_axes = n_axes
        self.center = center
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
    def fit(self, X, y, sample_weight=None, *, checkpoint=None, checkpoint_every=60.0):
        """Train on rows X with targets y.

        After Ctrl-C the estimator holds the model that training had come to, if an epoch was over, and
        KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. CSR matrices with sorted indices and arrays in C order, of float32 or float64, are used as they
            are, unless they are shifted.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            C is multiplied by the weight of a row.
        checkpoint : str or path-like, default=None
            A folder of its own for this training. What is in it when the training is killed lets a call with the same
            data and parameters go on, to the same model bit for bit; other data or parameters are refused. It is empty
            when `fit` is done.
        checkpoint_every : float or str, default=60.0
            Seconds, at the end of the epoch in which they are over, from one checkpoint to the next; or epochs, as in
            "5 epochs".

        Returns
        -------
        self : TaylorSVR
        """
        return self._fit(X, y, sample_weight, checkpoint, checkpoint_every)

    def fit_stream(self, source, *, epochs=1, checkpoint=None, checkpoint_every=60.0):
        """Train on rows that come batch by batch: files larger than memory, for example.

        As `TaylorSVC.fit_stream`. `offset_` is the mean target of the first 8192 rows, too.

        Parameters
        ----------
        source : str, path-like, list of them, iterable or callable
            Where batches (X, y) come from; see `TaylorSVC.fit_stream`.
        epochs : int, default=1
            Passes that train. "dual" and "pegasos" read the source twice more: before, to count rows, and afterwards,
            for the certificate.
        checkpoint : str or path-like, default=None
            A folder of its own for this training, to go on from when it is killed; see `fit`.
        checkpoint_every : float or str, default=60.0
            Seconds from one checkpoint to the next; or epochs, as in "5 epochs".

        Returns
        -------
        self : TaylorSVR
        """
        StreamFit(self, source, epochs, None, False, checkpoint, checkpoint_every).run()
        return self

    def partial_fit(self, X, y, sample_weight=None):
        """Train on a batch of rows, whatever the solver by steps of "adagrad": for data that arrives in pieces.

        Bandwidth, shift, the order of columns and `offset_` are those of the first batch, and stay. For what else there
        is to know see `TaylorSVC.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows. More columns than before are an error, unless `grow` is set.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : TaylorSVR
        """
        return self._partial_fit(X, y, sample_weight, lambda y, first: self._learn_y(y) if first else self._meaning())

    # Prediction.

    def predict(self, X):
        """The targets of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        values = self._outputs(X) + self.offset_
        return values[:, 0] if self._one_target else values

    # The model in the user's terms.

    @property
    def monomial_coef_(self):
        """The weights of the features of the shifted rows, in the order of the user's columns."""
        coefficients = self._coefficients()
        return coefficients[0] if self._one_target else coefficients

    def top_monomials(self, k=20, target=None, feature_names=None):
        """The strongest interactions between columns.

        Parameters
        ----------
        k : int, default=20
            How many.
        target : int, default=None
            With several targets: the number of the one of which to tell; None: all of them.
        feature_names : array-like of str of shape (n_features_in_,), default=None
            Names of the columns; see `TaylorSVC.top_monomials`.

        Returns
        -------
        monomials : list of Monomial, or list of such
            See `TaylorSVC.top_monomials`. With several targets and none chosen, a list with one for each target.
        """
        check_is_fitted(self)
        if self._one_target and target is None:
            return self._top_monomials(k, [0], feature_names)[0]
        if target is None:
            return self._top_monomials(k, range(self._n_tables), feature_names)
        if target not in range(self._n_tables):
            raise ValueError(f"target must be one of 0 to {self._n_tables - 1}; got {target!r}")
        return self._top_monomials(k, [target], feature_names)[0]

    # What outputs mean.

    _smoother = 'loss="squared_epsilon_insensitive"'

    def _check_own_parameters(self):
        check_choice("loss", self.loss, NUMBER_LOSSES)
        epsilon = self.epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not 0 <= float(epsilon) < inf:
            raise ValueError(f"epsilon must be a finite number >= 0; got {epsilon!r}")
        if not isinstance(self.center, bool | np.bool_):
            raise ValueError(f"center must be True or False; got {self.center!r}")

    def _check_y(self, y):
        y = check_array(y, ensure_2d=False, dtype=np.float64, order="C", input_name="y", ensure_min_samples=0)
        if y.ndim > 2 or (y.ndim == 2 and y.shape[1] == 0):
            raise ValueError(f"y must have one or two dimensions, and at least one column; got the shape {y.shape}")
        return y

    def _learn_y(self, y, classes=None):
        # The mean is known when weights are: see _encode_y.
        return {"_one_target": y.ndim == 1, "_n_tables": 1 if y.ndim == 1 else y.shape[1], "offset_": None}

    def _meaning(self):
        return {"_one_target": self._one_target, "_n_tables": self._n_tables, "offset_": self.offset_}

    def _n_outputs(self, meaning):
        return meaning["_n_tables"]

    def _count_support(self, targets, alpha, meaning):
        return [len(targets)]

    def _loss(self, meaning):
        return regression_loss(self.loss, float(self.epsilon))

    def _encode_y(self, y, meaning, rows, sample_weight):
        if (y.ndim == 1) != meaning["_one_target"] or (y.ndim == 2 and y.shape[1] != meaning["_n_tables"]):
            raise ValueError(f"y has the shape {y.shape}; it had {meaning['_n_tables']} targets before")
        if meaning["offset_"] is None:
            offset = _mean(y, sample_weight) if self.center else np.zeros(y.shape[1:])
            meaning["offset_"] = float(offset) if y.ndim == 1 else offset
        targets = y - meaning["offset_"]
        return np.ascontiguousarray(targets[:, None] if y.ndim == 1 else targets), sample_weight, None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def _mean(y, weight):
    """The mean of each target, by the weights of the rows; of equal numbers, exactly that number."""
    if weight is not None and weight.any():
        y, weight = y[weight > 0], weight[weight > 0]
    else:
        weight = None
    mean = np.average(y, axis=0, weights=weight)
    return mean + np.average(y - mean, axis=0, weights=weight)
