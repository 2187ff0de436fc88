"""How long training takes on this machine: real fits on samples of rows, and a line through their times."""

import warnings
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from .._train.primal import n_searched

SIZES = [64 * 4**k for k in range(7)]  # of samples, in rows
# The size whose model is judged, the same for all degrees, as far as they get there. Smaller samples are too easily
# learned to tell how many epochs it takes.
JUDGED = 4096
# Seconds. A sample whose fit takes that long tells enough; quick ones are fitted again, for others use the machine too,
# and whether the first epoch ends with the true gap is a matter of chance.
# When even the smallest would take too long, nothing is timed. No sample grows that has taken longer than SLOW, unless
# most of it was for the tables; and none that would then take longer than LONGEST.
ENOUGH, TWICE, THRICE, TOO_LONG, SLOW, LONGEST = 0.3, 1.5, 0.1, 1.0, 1.0, 4.0
LEAST_SHARE = 0.4  # of the time, that is for the rows
QUICK, LARGEST_FIRST = 0.03, 1024  # seconds, and rows, of the sample to begin with


class Pace(NamedTuple):
    """What was measured, for the number of rows that was asked for."""

    epoch: float  # seconds of the first epoch
    fit: float  # seconds of a whole fit; NaN without targets
    error: float  # 1 - score on rows that were held out; NaN without targets
    large: bool  # whether a sample was large enough to tell how many epochs it takes


def measure(model, X, y, held_out, n_rows, guess, n_touched):
    """Fit samples that grow, until one takes long enough to tell how long n_rows would take.

    Both an epoch and a fit take some time for the tables and some for each row, and the number of epochs hardly depends
    on the number of rows (bench/plan.py): so a line through two samples is drawn on to n_rows.

    Parameters
    ----------
    model : TaylorSVC or TaylorSVR
        With the degree in question. It is not changed.
    X : ndarray or CSR
        Rows in random order, as `check_rows` returns them.
    y : ndarray, or None
        Their targets. None: random labels stand in for them, which tell the time of an epoch.
    held_out : tuple
        Rows and targets that are not in X; used when there are targets.
    n_rows : int
        For how many rows to tell.
    guess : float
        About how many seconds a row a fit will take.
    n_touched : float
        How many rows have as many monomials as the table has slots: smaller samples meet memory that is new to them.

    Returns
    -------
    pace : Pace, or None
        None when nothing was measured: it would have taken too long, or there is one row only.
    """
    n_most, error = X.shape[0], float("nan")
    if guess * SIZES[0] > TOO_LONG or n_most < 2:
        return None
    model = clone(model).set_params(verbose=0, warm_start=False)
    labels = y
    if y is None:
        labels = np.arange(n_most) % 2
        model.set_params(max_iter=2)  # the last epoch ends with the objective, which takes time of its own
        if is_classifier(model):
            model.set_params(class_weight=None)
    sizes: list[int] = []
    times: list[np.ndarray] = []
    for at, size in enumerate(SIZES):
        n = min(size, n_most)
        if not sizes and size < LARGEST_FIRST and n < n_most and guess * SIZES[at + 1] < QUICK:
            continue  # the next one is quick enough to begin with
        times.append(_times(model, X[:n], labels[:n]))
        sizes.append(n)
        if y is not None and n == min(JUDGED, n_most):
            error = 1 - float(model.score(*held_out))
        if n == n_most or (len(sizes) > 1 and _tells_enough(sizes, times, model.solver, n_touched)):
            break
    epoch, fit, around = (_along(sizes, [some[k] for some in times], n_rows) for k in range(3))
    if model.solver == "adagrad":  # what is around the epochs is the search for a step size
        around = float(times[-1][2]) * n_searched(n_rows) / n_searched(n)
    fit += around
    return Pace(epoch, float("nan") if y is None else fit, error, n >= min(JUDGED, n_most))


def _tells_enough(sizes, times, solver, n_touched):
    """Whether the last sample does."""
    before, seconds = (float(some[1:].sum()) for some in times[-2:])
    slope = (seconds - before) / (sizes[-1] - sizes[-2])
    if seconds + slope * (SIZES[1] // SIZES[0] - 1) * sizes[-1] > LONGEST:
        return True
    if slope * sizes[-1] < LEAST_SHARE * seconds:  # it is the tables that take time: more rows cost little
        return False
    # The primal solvers change something for fewer and fewer rows: that takes more of them to see.
    return seconds > SLOW or (solver == "dual" and seconds > ENOUGH and sizes[-1] >= n_touched)


def _times(model, X, y):
    """Seconds of the first epoch, of all epochs, and of what is around them; fits the model."""
    epoch = around = float("inf")
    epochs = []  # how many times the first one all of them take: with another seed, there may be more or fewer
    for seed in range(3):
        trial = clone(model).set_params(random_state=seed) if seed else model
        trial._looks = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sample did not converge, or underflows
            start = perf_counter()
            trial.fit(X, y)
            fit = perf_counter() - start
        seconds = trial.history_["seconds"]
        epoch, around = min(epoch, seconds[0]), min(around, fit - seconds[-1])
        epochs.append(seconds[-1] / seconds[0])
        if fit > (TWICE, THRICE, 0)[seed]:
            break
    return np.array([epoch, epoch * np.median(epochs), around])


def _along(sizes, times, n_rows):
    """The time of n_rows, on the line through the two largest samples."""
    n, seconds = sizes[-1], float(times[-1])
    slope = seconds / n
    if len(sizes) > 1:
        # Rows take a share of the time, and no more than all of it: by so much times may be off by chance.
        slope = float(np.clip((seconds - times[-2]) / (n - sizes[-2]), LEAST_SHARE * slope, slope))
    return seconds + slope * (n_rows - n)
