"""What watches a training: the history, the progress bar, and scikit-learn's callbacks where it has them."""

import sys
from contextlib import contextmanager
from math import isnan
from typing import Any

import numpy as np

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    FRAMES = 1  # that with_callbacks puts between a method and its caller
except ImportError:
    FRAMES = 0

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks."""

    def with_callbacks(method):
        """No callbacks."""
        return method


__all__ = ["FRAMES", "CallbackSupportMixin", "Observer", "with_callbacks"]


class Observer:
    """Told of each epoch; keeps the history, draws the progress bar, calls the callbacks.

    Parameters
    ----------
    estimator : TaylorSVC
        Who is trained.
    data : dict
        X, y and metadata, for the callbacks.
    reconstruct : callable
        The attributes of a fitted estimator as it stands, for the callbacks.
    """

    def __init__(self, estimator, data, reconstruct):
        self.estimator, self.data, self.reconstruct = estimator, data, reconstruct
        self.rows: list[tuple] = []
        self.bar: Any = None
        self.context: Any = None
        self.task: Any = None

    @contextmanager
    def watching(self):
        """While training runs."""
        estimator = self.estimator
        most = None if estimator.max_iter == -1 else estimator.max_iter
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=most)
            self.context.call_on_fit_task_begin(estimator=estimator, **self.data)
        if estimator.verbose:
            self.bar = progress_bar(most)
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.close()
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=estimator, **self.data, reconstruction_attributes=self.reconstruct()
            )

    def begin_epoch(self):
        """Before an epoch."""
        if self.context is not None:
            self.task = self.context.subcontext(task_name="epoch")
            self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def note(self, epoch, seconds, record):
        """Add an epoch to the history, if it is not there."""
        if not self.rows or self.rows[-1][0] < epoch:
            self.rows.append((epoch, seconds, *_totals(record)))

    def end_epoch(self, epoch, seconds, record):
        """After an epoch. Returns whether to stop."""
        self.note(epoch, seconds, record)
        if self.bar is not None:
            primal, dual, active, seen = _totals(record)
            gap = "" if isnan(primal - dual) else f", gap {(primal - dual) / max(primal, 1e-300):.1e}"
            self.bar.set_postfix_str(f"objective {seen if isnan(primal) else primal:.5g}{gap}, {active} rows active")
            self.bar.update()
        if self.task is None:
            return False
        return self.task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=self.reconstruct()
        )

    def history(self, record=None):
        """One array for each quantity; the last record may know more than it did when the epoch ended."""
        if self.rows and record is not None:
            self.rows[-1] = (*self.rows[-1][:2], *_totals(record))
        names = ("epoch", "seconds", "primal", "dual", "active", "primal_seen")
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(names)
        return {name: np.array(column) for name, column in zip(names, columns, strict=True)}


def _totals(record):
    """The record with the sums over all problems."""
    primal, dual, active, seen = record
    return float(primal.sum()), float(dual.sum()), active, float(seen.sum())


def progress_bar(total):
    """tqdm's, or a plain one where it is not installed; None: nobody knows how many epochs there will be."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return PlainBar()
    return tqdm(total=total, unit="epoch", leave=True)


class PlainBar:
    """One line for each epoch."""

    def __init__(self):
        self.done, self.text = 0, ""

    def set_postfix_str(self, text):
        """What to say."""
        self.text = text

    def update(self):
        """An epoch is over."""
        self.done += 1
        print(f"epoch {self.done}: {self.text}", file=sys.stderr)

    def close(self):
        """Nothing to do."""
