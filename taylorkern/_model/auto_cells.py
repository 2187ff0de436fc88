"""n_cells="auto": as many cells as do best on rows that were held out."""

import warnings

import numpy as np
from sklearn.base import clone

CHOICES = (1, 4, 16, 64, 256, 1024)
LEAST_ROWS = 64  # of the sample, for each cell
TRAINED, HELD_OUT = 2**16, 2**13  # rows, at most
EPOCHS = 3
MOST = 2048  # with more, finding a row's cell takes longer than its walk


def auto_cells(model, X, y, sample_weight, random):
    """The number of cells for training rows, as `check_rows` returns them.

    Models with more and more cells are trained on a sample, by a few epochs of "adagrad", as long as they get better on
    other rows. Where the sample is smaller than X, the cells keep their size: there are as many times more of them. It
    takes about as long as some epochs over 65536 rows, whatever the size of X, and never depends on the clock.

    Returns
    -------
    n_cells : int
    """
    n_rows = X.shape[0]
    order = random.permutation(n_rows)[: TRAINED + HELD_OUT]
    n_held_out = min(len(order) // 8, HELD_OUT)
    held_out, trained = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    seed = random.randint(2**31 - 1)
    settings = {"solver": "adagrad", "max_iter": EPOCHS, "warm_start": False, "verbose": 0, "random_state": seed}
    best, best_score = 1, -np.inf
    for n_cells in CHOICES:
        if n_cells > 1 and n_cells * LEAST_ROWS > len(trained):
            break
        attempt = clone(model).set_params(n_cells=n_cells, **settings)
        weight = None if sample_weight is None else np.asarray(sample_weight)[trained]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                attempt.fit(X[trained], y[trained], weight)
        except ValueError:  # one class among few rows, or too large: what comes next would be no better
            break
        score = attempt.score(X[held_out], y[held_out]) if n_held_out else -np.inf
        if score > best_score:
            best, best_score = n_cells, score
        elif n_cells > 4 * best:
            break
    return best if best == 1 else min(round(best * n_rows / len(order)), MOST)
