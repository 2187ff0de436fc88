"""How long training takes on this machine: real fits on samples of rows, and a line through their times."""

import warnings
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from ._primal import n_searched

SIZES = [64 * 4**k for k in range(7)]  # of samples, in rows
# The size whose model is judged, the same for all degrees, as far as they get there. Smaller samples are too easily
# learned to tell how many epochs it takes.
JUDGED = 4096
# Seconds. A sample whose fit takes that long tells enough; quick ones are fitted again, for others use the machine too.
# When even the smallest would take too long, nothing is timed; and no sample grows that has taken longer than SLOW.
ENOUGH, TWICE, THRICE, TOO_LONG, SLOW = 0.3, 1.0, 0.1, 1.0, 1.0
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
        seconds = times[-1][1:].sum()
        enough = seconds > ENOUGH and n >= n_touched
        if n == n_most or (len(sizes) > 1 and (enough or seconds > SLOW)):
            break
    epoch, fit, around = (_along(sizes, [some[k] for some in times], n_rows) for k in range(3))
    if model.solver == "adagrad":  # what is around the epochs is the search for a step size
        around = float(times[-1][2]) * n_searched(n_rows) / n_searched(n)
    fit += around
    return Pace(epoch, float("nan") if y is None else fit, error, n >= min(JUDGED, n_most))


def _times(model, X, y):
    """Seconds of the first epoch, of all epochs, and of what is around them."""
    best = np.full(3, np.inf)
    for done in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sample did not converge, or underflows
            start = perf_counter()
            model.fit(X, y)
            fit = perf_counter() - start
        epochs = model.history_["seconds"]
        best = np.minimum(best, [epochs[0], epochs[-1], fit - epochs[-1]])
        if fit > (TWICE, THRICE, 0)[done]:
            break
    return best


def _along(sizes, times, n_rows):
    """The time of n_rows, on the line through the two largest samples."""
    n, seconds = sizes[-1], float(times[-1])
    slope = seconds / n
    if len(sizes) > 1:
        # Rows take a share of the time, and no more than all of it: by so much times may be off by chance.
        slope = float(np.clip((seconds - times[-2]) / (n - sizes[-2]), 0.4 * slope, slope))
    return seconds + slope * (n_rows - n)
