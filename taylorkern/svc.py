"""TaylorSVC: Gaussian-kernel classifiers trained on Taylor features that are walked, never stored."""

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ._model.estimator import TaylorModel, check_choice
from ._model.observe import with_callbacks
from ._stream.fit import StreamFit
from ._train.loss import JOINT_LOSSES, LABEL_LOSSES
from ._train.problem import padded

# The loss that goes with each way to train more than two classes; None: any.
MULTI_CLASS = {"ovr": None, "crammer_singer": "hinge", "multinomial": "log_loss"}


def _has_probabilities(estimator):
    if estimator._loss_name(several=True) != "log_loss":
        raise AttributeError(f"probability estimates are not available for loss={estimator.loss!r}")
    return True


class TaylorSVC(ClassifierMixin, TaylorModel):
    """Support vector classifier with the Gaussian kernel, for data of many rows.

    The kernel's Taylor series is cut after degree r, which leaves an inner product of monomials of the columns. They
    are walked inside each training step and never stored: beside X, training takes some tables of C(d + r, r) numbers
    and about 170 bytes a row, and a row with m nonzeros costs C(m + r, r) operations an epoch; with more than two
    classes, that for each class. Every fitted model has a certificate of how far its objective can be from that of the
    exact kernel.

    `C`, `gamma`, `class_weight` and `tol` mean what they mean in `sklearn.svm.SVC`. There is no separate bias: the
    constant monomial serves as one, and is regularised like the others. All classes are trained in the same pass over
    the rows; y may also be an indicator matrix of several labels for each row.

    Parameters
    ----------
    degree : int or "auto", default="auto"
        The degree r at which the kernel's series is cut. "auto" is the least one from 2 on that cuts a thousandth of
        the rows' norm at most, told by a closed form of X alone. Beyond 2 it is no higher than that the median row has
        1000 monomials, or the table of dense rows 2500; the tables have to fit into `memory_limit` (by default 256
        MiB), at degree 1 if need be. With `partial_fit` the first batch decides. Of the polynomial kernel, which is not
        cut, "auto" is 3.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVC`, of the data as given.
    kernel : {"gaussian", "rbf", "exponential", "polynomial", "poly"} or sequence of float, default="gaussian"
        See `TaylorFeatures`.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    normalize : {"auto"} or bool, default="auto"
        Whether each row's features are divided by their norm. The Gaussian kernel has K(x, x) = 1 for every row, and so
        has the cut one then; without, rows that are far from the centre have next to no features, and outputs of about
        0. "auto" is True for the Gaussian kernel and False for others.
    C : float, default=1.0
        The weight of the losses against that of the regulariser: the objective is 1/2 |w|^2 + C sum_i loss_i.
    loss : {"auto", "hinge", "squared_hinge", "log_loss"}, default="auto"
        "auto" is the hinge for two classes, as in SVC, and the squared hinge for more: of classes against the rest the
        hinge comes out worse than SVC's classes against one another, and the squared hinge as good, in a quarter of
        the epochs (`python -m bench.parity`). With `multi_class` other than "ovr" it is the loss that goes with that.
        "log_loss" makes it a kernel logistic regression, with `predict_proba`. For probabilities with the other losses
        use `sklearn.calibration.CalibratedClassifierCV`.
    solver : {"dual", "pegasos", "adagrad"}, default="dual"
        "dual" is dual coordinate ascent, which stops when the gap between its primal and dual objective is small
        enough. "pegasos" is stochastic gradient descent with averaging, whose gap closes slowly. "adagrad" has a step
        size for each monomial: the quickest to a good model when C is large, but without a dual point.
    shift : {"auto"}, None or array-like of shape (n_features,), default="auto"
        What is subtracted from each row before it is expanded. The Gaussian kernel does not change by it, and the
        approximation gets better. "auto" takes the most frequent value of each column where that makes it sparse, and
        its mean otherwise, both of some thousand rows (or none where rows are centred already); kernels that are not
        shift invariant are then not shifted.
    n_cells : int or "auto", default=1
        Rows are divided by the nearest of so many centres, which k-means finds, and each cell gets its own shift and
        its own tables. For bandwidths that are small beside the data: an expansion is good near the point at which it
        is taken. The kernel is then the Gaussian one between rows of one cell, and 0 between others. "auto" takes the
        number that does best on rows that are held out of a sample; `n_cells_` tells it.
    n_partitions : int, default=1
        Rows are divided into cells so many times, and the kernel is the mean of them: no row is near the border of a
        cell in all of them. Training takes as many times longer.
    n_axes : int, default=None
        Rows are expanded along so many of their principal axes; what lies beyond those is left out (of rows that are
        no unit rows it counts for their norm). For long rows, such as images, whose monomials are too many: the
        Gaussian kernel does not change when rows are rotated, and most of them lies along the first axes. The names of
        monomials are then those of axes.
    multi_class : {"ovr", "crammer_singer", "multinomial"}, default="ovr"
        What is trained when there are more than two classes. "ovr": each class against the rest. "crammer_singer": the
        hinge loss of Crammer and Singer, one problem for all classes. "multinomial": their cross entropy, with
        `predict_proba`.
    class_weight : dict or "balanced", default=None
        C is multiplied by the weight of a row's class. With more than two classes and "ovr", as in
        `sklearn.svm.LinearSVC`: in the problem of a class against the rest its own rows get its weight, the others 1.
        "balanced" counts rows, whatever their sample weights.
    tol : float, default=1e-3
        Training stops when the gap is at most tol times the primal objective, for each class. "adagrad", which has no
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
    classes_ : ndarray of shape (n_classes,)
        The labels; 0, 1, ... where y is an indicator matrix.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, when they have names.
    degree_ : int
        The degree.
    gamma_ : float
        The bandwidth as a number.
    loss_ : str
        The loss.
    n_slots_ : int
        The number of monomials: C(n_features + r, r), or C(n_axes + r, r), or the sum over all cells.
    shift_ : ndarray of shape (n_features_in_,)
        What was subtracted from each column. With cells: for each partition an array of shape (cells, n_features_in_).
    monomial_coef_ : ndarray of shape (1, n_slots_) or (n_classes, n_slots_)
        The weights of the features that `TaylorFeatures` makes of the shifted rows, with the same `normalize`; built
        when asked for.
    support_ : ndarray of int32 of shape (n_support,)
        After "dual" and "pegasos": the numbers, rising, of the training rows with a nonzero alpha, for any of several
        outputs. No other row has a part in the model. Rows of weight 0, which are left out, count in the numbering.
    n_support_ : ndarray of int32 of shape (n_classes,)
        How many of them each class has; with an indicator matrix, how many rows have a nonzero alpha for each label.
    column_importance_ : ndarray of shape (n_features_in_,)
        One number >= 0 for each column: the share of |w|^2, over all classes and cells, that lies in monomials with it.
        Each w_a^2 is divided among the columns of its monomial in proportion to their powers; the constant one is left
        out. They add up to 1, unless all are 0. As with any weights, columns of another scale have another importance.
        For `RFE` and `SelectFromModel`: `importance_getter="column_importance_"`.
    n_iter_ : int
        The number of epochs.
    history_ : dict of ndarray
        Per epoch: "epoch", "seconds" since the start, "primal" and "dual" objective (the sum over classes), "active"
        rows, and "primal_seen", which has each row's margin as it was when the row was visited. The true primal
        objective takes a pass of its own; where that was not due it is NaN.
    certificate_ : Certificate
        How far the model can be from the exact Gaussian SVM; prints as a table. With several classes one against the
        rest, `certificate_.parts` has one for each of them; with cells, `certificate_.cells` one for each cell.
    interrupted_ : bool
        Whether training ended by Ctrl-C. The model is then the one that it had come to (solver="pegasos": that of the
        last whole epoch); `n_iter_`, `history_` and `certificate_` tell of whole epochs.
    waiting_ : float
        After `fit_stream`: for which share of the time training has waited for rows.

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

    More than two classes, and what tells them apart:

    >>> from sklearn.datasets import load_iris
    >>> X3, y3 = load_iris(return_X_y=True, as_frame=True)
    >>> model = TaylorSVC(degree=3, random_state=0).fit(X3, y3)
    >>> model.score(X3, y3) > 0.95
    True
    >>> sorted(model.top_monomials(1))
    [0, 1, 2]

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
        degree="auto",
        gamma="scale",
        kernel="gaussian",
        coef0=1.0,
        normalize="auto",
        C=1.0,
        loss="auto",
        solver="dual",
        shift="auto",
        n_cells=1,
        n_partitions=1,
        n_axes=None,
        multi_class="ovr",
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
        self.normalize = normalize
        self.C = C
        self.loss = loss
        self.solver = solver
        self.shift = shift
        self.n_cells = n_cells
        self.n_partitions = n_partitions
        self.n_axes = n_axes
        self.multi_class = multi_class
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
    def fit(self, X, y, sample_weight=None, *, checkpoint=None, checkpoint_every=60.0):
        """Train on rows X with labels y.

        After Ctrl-C the estimator holds the model that training had come to, if an epoch was over, and
        KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. CSR matrices with sorted indices and arrays in C order, of float32 or float64, are used as they
            are, unless they are shifted.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels of any kind, at least two different ones; or an indicator matrix of 0 and 1.
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
        self : TaylorSVC
        """
        return self._fit(X, y, sample_weight, checkpoint, checkpoint_every)

    def fit_stream(self, source, *, epochs=1, classes=None, checkpoint=None, checkpoint_every=60.0):
        """Train on rows that come batch by batch: files larger than memory, for example.

        Memory is bounded by that of the tables and of some thousands of rows; "dual" and "pegasos" keep a number for
        each row and output besides. The model is the same, bit for bit, however the rows are cut into batches and
        files. Bandwidth and shift are taken from the first 8192 rows. Rows are shuffled within chunks of 8192: files
        that are sorted by class have to be shuffled before. See docs/streams.md.

        Parameters
        ----------
        source : str, path-like, list of them, iterable or callable
            Paths of svmlight files, packed or not, or patterns such as "part-*.gz"; a folder of shards; one of the
            sources of `taylorkern.stream`; anything that gives batches (X, y) each time it is iterated; or a function
            that returns a new iterator of batches.
        epochs : int, default=1
            Passes that train. "dual" and "pegasos" read the source twice more: before, to count rows, and afterwards,
            for the certificate.
        classes : array-like of shape (n_classes,), default=None
            All labels. None: they are found in a pass before training, which "adagrad" would not need otherwise.
        checkpoint : str or path-like, default=None
            A folder of its own for this training, to go on from when it is killed; see `fit`.
        checkpoint_every : float or str, default=60.0
            Seconds from one checkpoint to the next; or epochs, as in "5 epochs".

        Returns
        -------
        self : TaylorSVC

        Examples
        --------
        >>> import numpy as np
        >>> from taylorkern import TaylorSVC
        >>> def batches():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(20):
        ...         X = rng.uniform(-1, 1, size=(1000, 2))
        ...         yield X, X[:, 0] * X[:, 1] > 0
        >>> model = TaylorSVC(solver="adagrad", C=100.0, gamma=1.0, random_state=0)
        >>> model.fit_stream(batches, classes=[False, True]).score(*next(batches())) > 0.95
        True
        """
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            raise ValueError(f"class_weight must be a dict or None for a stream; got {self.class_weight!r}")
        if self.class_weight and not all(self.class_weight.values()):
            raise ValueError(f"class_weight must be > 0 for a stream; got {self.class_weight!r}")
        StreamFit(self, source, epochs, classes, True, checkpoint, checkpoint_every).run()
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
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels, also those that this batch does not have; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : TaylorSVC
        """

        def learn(y_checked, first):
            if first and classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
                )
            return self._learn_y(y_checked, classes) if first else self._meaning()

        return self._partial_fit(X, y, sample_weight, learn)

    # Prediction.

    def decision_function(self, X):
        """f(x) of each row: for two classes positive for `classes_[1]`, else largest for the class that is predicted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        values = self._outputs(X)
        return values if self._multilabel or values.shape[1] > 1 else values[:, 0]

    def predict(self, X):
        """The label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        values = self._outputs(X)
        if self._multilabel:
            return (values > 0).astype(np.int64)
        if values.shape[1] == 1:
            return self.classes_[(values[:, 0] > 0).astype(np.intp)]
        return self.classes_[values.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """The probability of each class; with loss="log_loss" only.

        With more than two classes and multi_class="ovr" they are those of each class against the rest, divided by their
        sum; with an indicator matrix each is that of its label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        values = self._outputs(X)
        if self._multilabel:
            return expit(values)
        if values.shape[1] == 1:
            positive = expit(values[:, 0])
            return np.column_stack([1 - positive, positive])
        if self.multi_class == "multinomial":
            return softmax(values, axis=1)
        probabilities = expit(values)
        total = probabilities.sum(axis=1, keepdims=True)
        return np.where(total > 0, probabilities / np.where(total > 0, total, 1), 1 / values.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """The logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        if len(self.classes_) == 2 and not self._multilabel:
            return -np.logaddexp(0, np.multiply.outer(self.decision_function(X), [1, -1]))
        if self._multilabel:
            return log_expit(self._outputs(X))
        if self.multi_class == "multinomial":
            return log_softmax(self._outputs(X), axis=1)
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    # The model in the user's terms.

    @property
    def monomial_coef_(self):
        """The weights of the features of the shifted rows, in the order of the user's columns."""
        return self._coefficients()

    def top_monomials(self, k=20, label=None, feature_names=None):
        """The strongest interactions between columns.

        Parameters
        ----------
        k : int, default=20
            How many.
        label : object, default=None
            With more than two classes: the class of which to tell; None: all of them.
        feature_names : array-like of str of shape (n_features_in_,), default=None
            Names of the columns. None: `feature_names_in_`, or x0, x1, ... In a pipeline whose steps before make sparse
            matrices, which have no names: `model[-1].top_monomials(feature_names=model[:-1].get_feature_names_out())`.
            Along principal axes monomials are named by these, whatever columns are called.

        Returns
        -------
        monomials : list of Monomial, or dict of such
            Named tuples (name, weight, share, powers), strongest first; the list prints as a table. `weight` is the
            entry of `monomial_coef_`; `share` is in what part of the training rows the monomial is not zero. With more
            than two classes and no label, a dict with such a list for each class.

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
        classes = self.classes_.tolist()
        if self._n_tables == 1 and not self._multilabel:
            if label is not None and label not in classes:
                raise ValueError(f"label must be one of the classes {classes}; got {label!r}")
            return self._top_monomials(k, [0], feature_names)[0]
        if label is None:
            return dict(zip(classes, self._top_monomials(k, range(len(classes)), feature_names), strict=True))
        if label not in classes:
            raise ValueError(f"label must be one of the classes {classes}; got {label!r}")
        return self._top_monomials(k, [classes.index(label)], feature_names)[0]

    # What outputs mean.

    _smoother = 'loss="squared_hinge"'

    def _check_own_parameters(self):
        check_choice("loss", self.loss, ("auto", *LABEL_LOSSES))
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        needed = MULTI_CLASS[self.multi_class]
        if self.loss != "auto" and needed not in (None, self.loss):
            raise ValueError(f"multi_class={self.multi_class!r} goes with loss={needed!r}; got loss={self.loss!r}")

    def _check_y(self, y):
        if sparse.issparse(y) or (hasattr(y, "ndim") and y.ndim == 2 and y.shape[1] > 1) or _is_nested(y):
            y = check_array(y, accept_sparse="csr", input_name="y", dtype=None, ensure_min_features=0)
            check_classification_targets(y)
            y = y.toarray() if sparse.issparse(y) else y
            if y.ndim == 2 and y.shape[1] > 1:
                if not np.isin(y, (0, 1)).all():
                    raise ValueError("y of several columns must be an indicator matrix of 0 and 1, one column a label")
                return y.astype(np.int8, order="C")
        plain = type(y) is np.ndarray and y.ndim == 1 and y.flags.carray  # as column_or_1d would return it
        y = y if plain else column_or_1d(y, warn=True)
        if not (plain and y.dtype.kind in "biuf" and np.isfinite(y).all()):
            assert_all_finite(y, input_name="y")
        two = _two_labels(y)
        if two is None or (two != np.trunc(two)).any():  # two whole numbers are labels
            check_classification_targets(y)
        return y

    def _learn_y(self, y, classes=None):
        if y.ndim == 2:
            if self.multi_class != "ovr":
                raise ValueError(f'several labels for a row go with multi_class="ovr"; got {self.multi_class!r}')
            if classes is not None and not np.array_equal(np.unique(classes), np.arange(y.shape[1])):
                raise ValueError(f"classes must be the numbers of the {y.shape[1]} columns of y; got {classes!r}")
            return {"classes_": np.arange(y.shape[1]), "_multilabel": True}
        two = _two_labels(y) if classes is None else None
        classes = np.unique(y if classes is None else classes) if two is None else two
        if len(classes) == 1:
            raise ValueError(f"The number of classes has to be greater than one; got 1 class: {classes[0]!r}")
        return {"classes_": classes, "_multilabel": False}

    def _meaning(self):
        return {"classes_": self.classes_, "_multilabel": self._multilabel}

    def _n_outputs(self, meaning):
        n_classes = len(meaning["classes_"])
        return 1 if n_classes == 2 and not meaning["_multilabel"] and self.multi_class == "ovr" else n_classes

    @property
    def _n_tables(self):
        return 1 if len(self.classes_) == 2 and not self._multilabel else len(self.classes_)

    def _loss(self, meaning):
        if self.multi_class != "ovr":
            return JOINT_LOSSES[self.multi_class]
        return LABEL_LOSSES[self._loss_name(len(meaning["classes_"]) > 2 and not meaning["_multilabel"])]

    def _loss_name(self, several):
        """What `loss` stands for, with several classes or with two."""
        if self.loss != "auto":
            return self.loss
        return MULTI_CLASS[self.multi_class] or ("squared_hinge" if several else "hinge")

    @property
    def loss_(self):
        """The loss that was trained."""
        check_is_fitted(self)
        return self._loss_name(len(self.classes_) > 2 and not self._multilabel)

    def _encode_y(self, y, meaning, rows, sample_weight):
        classes = meaning["classes_"]
        if (y.ndim == 2) != meaning["_multilabel"]:
            raise ValueError("y must be an indicator matrix if it was one before, and a vector if it was one")
        if meaning["_multilabel"]:
            if y.shape[1] != len(classes):
                raise ValueError(f"y has {y.shape[1]} columns; it had {len(classes)} before")
            return np.where(y > 0, 1, -1).astype(np.int8), sample_weight, self._favour(classes, None)
        number, known = _numbers(y, classes)
        if not known.all():
            raise ValueError(f"y has the label {y[~known][0]!r}, which is not one of the classes {classes!r}")
        n_outputs = self._n_outputs(meaning)
        if n_outputs == 1:
            targets = (2 * number - 1).astype(np.int8, copy=False)[:, None]
        else:
            targets = np.full((len(y), n_outputs), -1, dtype=np.int8)
            targets[np.arange(len(y)), number] = 1
        if self.class_weight is None:
            return targets, sample_weight, None
        of_class = self._favour(classes, y)
        if n_outputs > 1 and self.multi_class == "ovr":
            return targets, sample_weight, of_class
        return targets, of_class[number] * (1 if sample_weight is None else sample_weight), None

    def _favour(self, classes, y):
        """The weight of each class; y None: of each label of an indicator matrix."""
        if self.class_weight is None:
            return None
        if y is None and not isinstance(self.class_weight, dict):
            raise ValueError(f"class_weight must be a dict or None for an indicator matrix; got {self.class_weight!r}")
        weights = compute_class_weight(self.class_weight, classes=classes, y=classes if y is None else y)
        one_by_one = y is None or (len(classes) > 2 and self.multi_class == "ovr")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"class_weight must hold finite numbers >= 0; got {self.class_weight!r}")
        if one_by_one and not weights.all():
            raise ValueError(f"class_weight must be > 0 for each of several classes; got {self.class_weight!r}")
        return weights

    def _count_support(self, targets, alpha, meaning):
        if meaning["_multilabel"]:
            return np.count_nonzero(alpha, axis=0)
        positive = np.count_nonzero(targets > 0, axis=0)
        return positive if len(positive) > 1 else [len(targets) - positive[0], positive[0]]

    def _to_model(self, table, meaning):
        """Of two classes that are trained together, the difference."""
        if self._n_outputs(meaning) == 2 and not meaning["_multilabel"]:
            return table[:, 1:2] - table[:, 0:1]
        return table

    def _trained_weights(self, problem):
        weights = super()._trained_weights(problem)
        if problem.n_outputs == 1 or weights.shape[1] > 1:
            return weights
        both = np.zeros((len(weights), padded(2, weights.dtype)), dtype=weights.dtype)
        both[:, 1] = weights[:, 0] / 2  # at the optimum they add up to 0
        both[:, 0] = -both[:, 1]
        return both

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi_class == "ovr"
        return tags


def _is_nested(y):
    """Whether y is a list of lists, or of arrays, of more than one entry."""
    first = y[0] if isinstance(y, list | tuple) and len(y) > 0 else None
    return isinstance(first, list | tuple | np.ndarray) and np.size(first) > 1


def _two_labels(y):
    """The labels of y, sorted, when they are numbers and just two; else None.

    Most y are such: then it is known at once, without sorting them.
    """
    if y.dtype.kind not in "biuf" or len(y) < 2:
        return None
    labels = np.unique(y[:: -(-len(y) // 1000)])
    return labels if len(labels) == 2 and ((y == labels[0]) | (y == labels[1])).all() else None


def _numbers(y, classes):
    """(the number of each label among the classes, whether it is one of them)."""
    if len(classes) == 2 and y.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        second = y == classes[1]
        return second.view(np.int8), second | (y == classes[0])
    number = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return number, classes[number] == y
