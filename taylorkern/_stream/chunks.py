"""From batches to chunks: rows that are checked, cut to one size whatever size they came in, and read ahead."""

from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _get_feature_names

from .._data.expansion import CHUNK_ROWS
from .._model.checkpoint import digest

AHEAD = 2  # chunks that are read before they are asked for
LOOK = 0.1  # seconds between two looks of the reader at whether it is still wanted


class Chunk(NamedTuple):
    """Some rows of a stream."""

    X: Any
    y: Any
    first: int  # the number of its first row in the stream
    end: int  # and of the one behind its last
    digest: bytes  # of its rows; empty when nobody asks


def checked(batches, check):
    """(rows, targets) of each batch, all of the type and with the columns of the first; empty ones are left out.

    check(X, y) returns rows and targets that can be trusted.
    """
    head: Any = None
    head_names: Any = None
    for number, batch in enumerate(batches):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ValueError(f"batch {number} of the source is not a pair (X, y) but {type(batch).__name__}")
        X, y = batch
        if not (X.shape[0] if hasattr(X, "shape") else len(X)):
            continue
        names = _get_feature_names(X)
        rows, y = check(X, y)
        if head is None:
            head, head_names = rows[:1], names
        if rows.shape[1] != head.shape[1]:
            raise ValueError(f"batch {number} of the source has {rows.shape[1]} columns; the first had {head.shape[1]}")
        if (names is None) != (head_names is None) or (names is not None and not np.array_equal(names, head_names)):
            raise ValueError(f"the columns of batch {number} of the source are not named as those of the first")
        if sparse.issparse(head):
            rows = rows if sparse.issparse(rows) else sparse.csr_array(rows)
        elif sparse.issparse(rows):
            rows = rows.toarray()
        yield rows.astype(head.dtype, copy=False), y


def chunks(batches, digests=False):
    """The same rows in chunks of CHUNK_ROWS, the last of what is left: they do not depend on how they came."""
    parts: list = []
    first = room = 0
    for rows, y in batches:
        at = 0
        while at < rows.shape[0]:
            room = room or CHUNK_ROWS
            take = min(room, rows.shape[0] - at)
            whole = take == rows.shape[0]  # of which no copy is made
            parts.append((rows, y) if whole else (rows[at : at + take], y[at : at + take]))
            at, room = at + take, room - take
            if not room:
                yield _chunk(parts, first, digests)
                parts, first = [], first + CHUNK_ROWS
    if parts:
        yield _chunk(parts, first, digests)


def _chunk(parts, first, digests):
    X, y = parts[0]
    if len(parts) > 1:
        xs = [part[0] for part in parts]
        X = sparse.vstack(xs, format="csr") if sparse.issparse(X) else np.concatenate(xs)
        y = np.concatenate([part[1] for part in parts])
    return Chunk(X, y, first, first + X.shape[0], digest(X, y) if digests else b"")


class Ahead:
    """An iterator that a thread of its own runs ahead of; to be used in a `with` statement, which ends the thread.

    What the thread's iterator raises is raised by `next`.

    Parameters
    ----------
    begin : callable
        Returns the iterator; called in the thread.

    Attributes
    ----------
    waited : float
        Seconds for which `next` has waited.
    """

    def __init__(self, begin):
        self.waited = 0.0
        self._begin, self._unwanted = begin, Event()
        self._queue: Queue = Queue(AHEAD)
        self._thread = Thread(target=self._run, name="taylorkern reader", daemon=True)

    def __enter__(self):
        try:
            self._thread.start()
        except BaseException:  # Ctrl-C may come before start is done
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._unwanted.set()
        with suppress(RuntimeError):  # it has not begun; then it ends as soon as it does
            self._thread.join()

    def __iter__(self):
        return self

    def __next__(self):
        begin = perf_counter()
        item, error = self._queue.get()
        self.waited += perf_counter() - begin
        if error is not None:
            raise error
        return item

    def _run(self):
        items: Any = ()
        try:
            items = iter(() if self._unwanted.is_set() else self._begin())
            for item in items:
                if not self._put(item, None):
                    return
            self._put(None, StopIteration())
        except BaseException as error:  # whatever it is, it is the caller's
            self._put(None, error)
        finally:
            if hasattr(items, "close"):
                items.close()  # files are closed now, and here

    def _put(self, item, error):
        """Whether it was taken in."""
        while not self._unwanted.is_set():
            try:
                self._queue.put((item, error), timeout=LOOK)
            except Full:
                continue
            return True
        return False
