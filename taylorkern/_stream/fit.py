"""fit_stream: epochs over chunks of a source, in memory that does not grow with it, with checkpoints between chunks."""

import json
from math import comb
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from .._data.checks import learn_columns
from .._data.expansion import check_count
from .._data.memory import check_memory, readable
from .._data.rows import is_csr
from .._model.checkpoint import (
    digest,
    open_checkpoint,
    random_arrays,
    random_state,
    restore_solver,
    set_random_state,
    solver_arrays,
)
from .._model.estimator import TABLES
from .._model.observe import Observer, progress_bar
from .._train.loss import radius2
from .._train.problem import padded
from .chunks import AHEAD, Ahead, checked, chunks
from .gathering import Gathering
from .solvers import STREAM_SOLVERS
from .sources import as_source

ALPHA_BYTES = (16, 24)  # for each row: of each output, and of its own


class StreamFit:
    """A training on a stream.

    Gamma, shift, the way to walk and the targets' offset come from the first chunk. Solvers with a dual point take a
    pass before training, in which rows are counted, and one after it, for the certificate. Classes that are not given
    are found in the pass before.

    Parameters
    ----------
    model : TaylorModel
        Who is trained; changed when all is done, and by Ctrl-C.
    source : object
        What the user gave.
    epochs : int
        Passes that train.
    classes : array-like or None
        The labels, if the user knows them. For numbers None.
    of_classes : bool
        Whether there are such.
    checkpoint, every : path-like or None, float
        Where and how often the state is saved.
    """

    def __init__(self, model, source, epochs, classes, of_classes, checkpoint, every):
        model._check_parameters()
        check_count("epochs", epochs)
        self.model, self.epochs, self.of_classes = model, int(epochs), of_classes
        self.classes = None if classes is None else np.unique(classes)
        self.make_solver = STREAM_SOLVERS[model.solver]
        certified = self.make_solver.certified
        self.counts_first = certified or (of_classes and classes is None)
        self.begin = as_source(source, self.epochs + self.counts_first + certified)
        facts = {"epochs": epochs, "classes": self.classes}
        self.store = open_checkpoint(model, checkpoint, every, "fit_stream", facts)
        self.head: Any = None  # a row as the user gives it
        self.problem: Any = None  # of the first chunk
        self.meaning: Any = None
        self.expansion: Any = None
        self.shift: Any = None
        self.walk_dense: Any = None
        self.solver: Any = None
        self.n_rows: Any = None
        self.ceiling: Any = None  # for Pegasos: the objective at w = 0
        self.epoch, self.skip, self.seconds, self.waited = 0, 0, 0.0, 0.0
        self.first = self.chain = self.whole = b""  # digests: of the first chunk, of those so far, and of all of them
        self.observer = Observer(model, None, None)

    def run(self):
        """Train, and make the model that of the stream."""
        saved = self.store.load() if self.store else None
        self.random = random_state(self.model.random_state, saved)
        self.began = random_arrays(self.random, "began") if self.store else {}
        if saved is not None:
            self._take_over(saved)
        elif self.counts_first:
            self._count()
        if self.model.verbose:
            self.observer.bar = progress_bar(self.epochs)
        try:
            while self.epoch < self.epochs:
                self._train(saved)
                saved = None
            self.solver.finish()
            table, certificate, support = self._certify() if self.solver.certified else (self._table(), None, None)
        except KeyboardInterrupt:
            if self.solver is not None and self.epoch + self.skip > 0:  # a whole chunk was taken
                self.solver.finish()
                self._end(self._table(), None, interrupted=True)
            raise
        finally:
            if self.observer.bar is not None:
                self.observer.bar.close()
        self._end(table, certificate, interrupted=False, support=support)
        if self.store:
            self.store.remove()

    # Passes.

    def _chunks(self):
        return chunks(checked(self.begin(), self._check), digests=self.store is not None)

    def _problems(self, skip=0, whole=False):
        """(chunk, problem) of all chunks, made by who reads them; of those before the row `skip` the first one only.

        Rows that were shifted are not held as they came, but for the certificate.
        """
        for chunk in self._chunks():
            if self.n_rows is not None and chunk.end > self.n_rows:
                raise ValueError(f"the source gave {self.n_rows} rows in the pass before, and now more")
            problem = self._problem_of(chunk) if chunk.end > skip or self.problem is None else None
            yield chunk if whole else chunk._replace(X=None, y=None), problem

    def _check(self, X, y):
        rows, y = self.model._check_data(X, y)
        if self.head is None:
            self.head = rows[:1] if sparse.issparse(rows) else X[:1]
        return rows, y

    def _follow(self, chunk):
        """Count a chunk that was taken."""
        self.skip = chunk.end
        if self.store:
            self.chain = digest(np.frombuffer(chunk.digest, dtype=np.uint8), before=self.chain)
            self.first = self.first or self.chain

    def _check_whole(self):
        """After a pass: it gave as many rows as those before, and the same ones where that is known."""
        if self.skip == 0 and not self.n_rows:
            raise ValueError("the source has no rows")
        if self.n_rows is not None and self.skip != self.n_rows:
            raise ValueError(f"the source gave {self.skip} rows, and {self.n_rows} in the pass before")
        if self.whole not in (b"", self.chain):
            raise ValueError("the source gave other rows than in the pass before")
        self.n_rows, self.whole, self.skip, self.chain = self.skip, self.chain, 0, b""

    def _count(self):
        """The pass before training."""
        labels: list = []
        total, of_numbers = 0.0, not self.of_classes and self.model.solver == "pegasos"
        with Ahead(self._chunks) as ahead:
            for chunk in ahead:
                if self.of_classes and self.classes is None and chunk.y.ndim == 1:
                    labels = [np.unique(np.concatenate([*labels, chunk.y]))]
                if of_numbers:  # of which Pegasos has to know how large they are
                    total = total + self._problem_of(chunk).at_zero() * chunk.X.shape[0]
                self._follow(chunk)
        self._check_whole()
        if labels:
            self.classes = labels[0]
        if of_numbers:
            self.ceiling = total / self.n_rows

    def _train(self, saved):
        """One epoch, or what is left of it."""
        begin, skip = perf_counter() - self.seconds, self.skip
        chain, self.skip, self.chain = self.chain, 0, b""
        with Ahead(lambda: self._problems(skip)) as ahead:
            for chunk, problem in ahead:
                if self.solver is None:
                    self._start(chunk, saved)
                if chunk.end > skip:
                    if saved is None or chunk.first > skip:
                        self._save_if_due(chunk, begin, ahead)
                    if chunk.first == 0:
                        self.solver.begin_epoch()
                    self.solver.take(problem, chunk.first)
                self._follow(chunk)
                if chunk.end == skip and self.chain != chain:
                    raise ValueError(f"{self.store.path}: the first {skip} rows of the source are not those trained on")
            self.waited += ahead.waited
        if self.skip < skip:
            raise ValueError(f"{self.store.path}: the source gave {self.skip} rows, and {skip} were trained on")
        self._check_whole()
        self.epoch, self.seconds = self.epoch + 1, perf_counter() - begin
        self.observer.end_epoch(self.epoch, self.seconds, self.solver.record(self.problem))

    def _certify(self):
        """The pass after training: (the tables that predict, the certificate, the support vectors)."""
        found = []
        gathering = Gathering(self.solver, self.problem, self.n_rows, self.random, self._problem_of_rows)
        with Ahead(lambda: self._problems(whole=True)) as ahead:
            for chunk, problem in ahead:
                gathering.add(chunk, problem)
                alpha = self.solver.dual_point(chunk.first, chunk.end)
                rows, counts = self.model._find_support(problem, alpha, self.meaning)
                found.append((rows.astype(np.int64) + chunk.first, counts))
                self._follow(chunk)
        self._check_whole()
        table, (primal, dual), certificate = gathering.end()
        last = self.observer.rows[-1]
        self.observer.rows[-1] = (*last[:2], float(primal.sum()), float(dual.sum()), *last[4:])
        if self.n_rows > np.iinfo(np.int32).max:  # in which support vectors are numbered
            return table, certificate, None
        rows, counts = zip(*found, strict=True)
        return table, certificate, (np.concatenate(rows).astype(np.int32), np.sum(counts, axis=0, dtype=np.int32))

    # The problem.

    def _start(self, chunk, saved):
        """The solver, after the first chunk."""
        ceiling = self.ceiling
        if ceiling is None and radius2(self.problem.loss, self.problem.n_outputs) is not None:
            largest = max([1.0, *(getattr(self.model, "class_weight", None) or {}).values()])
            ceiling = radius2(self.problem.loss, self.problem.n_outputs) * np.full(self.problem.n_problems, largest)
        self._check_memory()
        if saved is not None:
            set_random_state(self.random, saved)
        solver = self.make_solver(self.problem, self.random, self.n_rows, ceiling, fresh=saved is None)
        if saved is not None:
            restore_solver(solver, saved)
            if digest(np.frombuffer(chunk.digest, dtype=np.uint8)) != self.first:
                raise ValueError(f"{self.store.path}: the first rows of the source are not those trained on")
        self.solver = solver

    def _problem_of(self, chunk):
        """A chunk as a problem; the first one settles what all have in common."""
        model = self.model
        if self.problem is not None:
            return self._problem_of_rows(chunk.X, chunk.y)
        self.meaning = model._learn_y(chunk.y, self.classes)
        first = chunk.X, chunk.y, None, self.meaning
        self.expansion, self.shift = model._expand_rows(*first, self.random, model.solver, compact=False)
        self.problem = model._problem(chunk.X, chunk.y, None, self.meaning, self.expansion, self.shift, unit=1.0)
        self.walk_dense = self.problem.rows.core.walk_dense
        return self.problem

    def _problem_of_rows(self, X, y):
        """Some rows as a problem, when the first chunk has been seen."""
        shared = self.meaning, self.expansion, self.shift
        return self.model._problem(X, y, None, *shared, unit=1.0, walk_dense=self.walk_dense)

    def _check_memory(self):
        model, X = self.model, self.problem.rows.X
        n_outputs, n_slots = self.problem.n_outputs, self.problem.n_slots
        each = TABLES[model.solver] * padded(n_outputs, X.dtype) * X.dtype.itemsize
        others = (AHEAD + 3) * (_stored(X) + _stored(self.problem.whole))
        if self.make_solver.certified:
            others += self.n_rows * (ALPHA_BYTES[0] * n_outputs + ALPHA_BYTES[1])
        outputs = f" for each of {n_outputs} outputs" if n_outputs > 1 else ""
        what = f"training on a stream with {n_slots} monomials{outputs}"
        check_memory(n_slots * each + others, model.memory_limit, what, lambda limit: self._remedy(each, others, limit))

    def _remedy(self, each, others, limit):
        """The highest degree whose tables fit, in words."""
        expansion, X = self.expansion, self.problem.rows.X
        if self.problem.rows.cells is not None:
            return ""
        if not sparse.issparse(self.head):  # at a lower degree rows may be walked dense
            others += (AHEAD + 3) * max(X.shape[0] * X.shape[1] * X.dtype.itemsize - _stored(X), 0)
        for r in range(expansion.degree - 1, 0, -1):
            n_bytes = comb(expansion.n_columns + r, r) * each + others
            if n_bytes <= limit:
                return f"degree={r} would take {readable(n_bytes)}"
        return ""

    # Checkpoints.

    def _save_if_due(self, chunk, begin, ahead):
        ended = None if chunk.first else self.epoch
        if not self.store or self.epoch + chunk.first == 0 or not self.store.due(ended):
            return
        self.store.save(
            {
                **self.began,
                **random_arrays(self.random),
                **solver_arrays(self.solver),
                "history": np.array(self.observer.rows, dtype=np.float64).reshape(-1, 6),
                "progress": np.array([self.epoch, chunk.first, -1 if self.n_rows is None else self.n_rows]),
                "seconds": np.array([perf_counter() - begin, self.waited + ahead.waited]),
                "ceiling": np.array([] if self.ceiling is None else self.ceiling),
                "classes": _as_bytes(json.dumps(_classes_as_list(self.classes)).encode()),
                **{name: _as_bytes(getattr(self, name)) for name in ("first", "chain", "whole")},
            }
        )

    def _take_over(self, saved):
        self.epoch, self.skip, n_rows = saved["progress"].tolist()
        self.n_rows = None if n_rows < 0 else n_rows
        self.seconds, self.waited = saved["seconds"].tolist()
        self.ceiling = saved["ceiling"] if len(saved["ceiling"]) else None
        self.first, self.chain, self.whole = (saved[name].tobytes() for name in ("first", "chain", "whole"))
        classes = json.loads(saved["classes"].tobytes())
        self.classes = None if classes is None else np.array(classes[1], dtype=classes[0])
        self.observer.rows = [(int(row[0]), *row[1:4], int(row[4]), row[5]) for row in saved["history"].tolist()]

    # The model.

    def _table(self):
        return self.solver.model(self.problem)

    def _end(self, table, certificate, interrupted, support=None):
        model = self.model
        learn_columns(model, self.head)
        model.__dict__.update(model._model_attributes(table, self.problem, self.shift, self.meaning))
        model.history_ = self.observer.history()
        model.n_iter_, model.interrupted_ = max(self.epoch, 1), interrupted
        model.waiting_ = self.waited / self.seconds if self.seconds else 0.0
        model._alpha, model._support = None, support
        model._stream = self.solver.stream() if model.solver == "adagrad" else None
        model.__dict__.pop("certificate_", None)
        if certificate is not None:
            model.certificate_ = certificate
            model._warn_underflow(self.n_rows, stacklevel=5)
        if not interrupted:
            margins = self.problem.margins(table, self.expansion.margin)
            model._warn_of_cut(self.problem, margins, stacklevel=4)


def _stored(X):
    """The bytes of some rows; None: there are none."""
    if X is None:
        return 0
    return X.data.nbytes + X.indices.nbytes if is_csr(X) else X.nbytes


def _as_bytes(data):
    return np.frombuffer(data, dtype=np.uint8)


def _classes_as_list(classes):
    return None if classes is None else [classes.dtype.str, classes.tolist()]
