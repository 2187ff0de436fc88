"""The generator behind `random_state`."""

import numpy as np
from sklearn.utils import check_random_state

FIXED = 0  # the seed that None stands for


def fixed_random_state(seed):
    """A RandomState, as of `sklearn.utils.check_random_state`; but None stands for a fixed order, as in SVC.

    Numpy's own generator, which None stands for elsewhere, would give another model for the same data each time.
    """
    return np.random.RandomState(FIXED) if seed is None else check_random_state(seed)
