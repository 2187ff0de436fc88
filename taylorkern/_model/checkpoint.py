"""Checkpoints: a training that was killed goes on where it was, to the same bits. Data only, in a safetensors file."""

import json
import os
import re
import warnings
from contextlib import suppress
from glob import escape, glob
from hashlib import blake2b
from numbers import Integral, Real
from time import monotonic

import numpy as np
from scipy import sparse

from .._data.randomness import fixed_random_state
from .._train.problem import Record
from .safetensors import Reader, parse, pieces, tensor, write, write_atomically

FORMAT, FORMAT_VERSION = "taylorkern checkpoint", "3"
NAME, LEFTOVERS = "checkpoint.safetensors", ".taylorkern-*.tmp"
LONG = 200  # characters of a value
INDIFFERENT = ("memory_limit", "n_jobs", "verbose")  # parameters on which no bit of a model depends


class Checkpoint:
    """A folder with at most one checkpoint, which is replaced as a whole or not at all.

    Parameters
    ----------
    folder : str or path-like
        The folder; it is made when it is not there. What a killed process has left in it is removed.
    every : float or str
        Seconds between two checkpoints; or epochs, as in "5 epochs".
    about : dict of str to str
        What the training is about. A checkpoint of which this is not true is refused.
    """

    def __init__(self, folder, every, about):
        epochs = re.fullmatch(r"([1-9]\d{0,8}) epochs?", every) if isinstance(every, str) else None
        if epochs is None and (isinstance(every, bool) or not isinstance(every, Real) or not float(every) >= 0):
            raise ValueError(
                f'checkpoint_every must be a number of seconds >= 0, or epochs as in "5 epochs"; got {every!r}'
            )
        self.path, self.about = os.path.join(folder, NAME), about
        self.epochs = int(epochs[1]) if epochs else None
        self.every = 0.0 if epochs else float(every)
        os.makedirs(folder, exist_ok=True)
        for path in glob(os.path.join(escape(os.fspath(folder)), LEFTOVERS)):
            with suppress(OSError):
                os.unlink(path)
        self._last = monotonic()

    def load(self):
        """The state that was saved, {name: array}, or None."""
        if not os.path.exists(self.path):
            return None
        with open(self.path, "rb") as stream:
            try:
                reader = Reader(stream, os.fstat(stream.fileno()).st_size, _check_format)
                self._check_about(parse(reader.metadata["about"], "about"))
                return {name: stored.read(any_number=True) for name, stored in reader.tensors.items()}
            except ValueError as problem:
                raise ValueError(f"{self.path}: {problem}") from problem

    def _check_about(self, about):
        names = [*self.about, *(name for name in about if name not in self.about)]
        differ = [
            f"{name} was {about.get(name, 'not there')} and is {self.about.get(name, 'not there')}"
            for name in names
            if about.get(name) != self.about.get(name)
        ]
        if differ:
            raise ValueError(f"it is the checkpoint of another training: {'; '.join(differ)}")

    def due(self, n_epochs):
        """Whether it is time for another one, when so many epochs have just ended (None: in the middle of one)."""
        if self.epochs is not None:
            return n_epochs is not None and n_epochs % self.epochs == 0
        return monotonic() - self._last >= self.every

    def save(self, state):
        """Replace the checkpoint. When the disk is full, or otherwise fails, the old one stays, with a warning."""
        metadata = {"format": FORMAT, "version": FORMAT_VERSION, "about": json.dumps(self.about)}
        tensors = {name: tensor(values) for name, values in state.items()}
        try:
            write_atomically(self.path, lambda stream: write(stream, metadata, tensors, any_number=tensors))
        except OSError as problem:
            warnings.warn(
                f"{self.path} could not be written, and stays as it was: {problem}", RuntimeWarning, stacklevel=2
            )
        self._last = monotonic()

    def remove(self):
        """The training is over."""
        with suppress(OSError):
            os.unlink(self.path)


def _check_format(metadata):
    if metadata.get("format") != FORMAT:
        raise ValueError("it is no checkpoint of taylorkern")
    if metadata.get("version") != FORMAT_VERSION or "about" not in metadata:
        raise ValueError(
            f"it is a checkpoint of version {metadata.get('version')!r}; this taylorkern goes on from version "
            f"{FORMAT_VERSION} only"
        )


def open_checkpoint(estimator, folder, every, method, facts):
    """The checkpoint of a training, or None when the user wants none.

    `facts` are arrays and other values, besides the parameters, that have to be the same for it to go on.
    """
    if folder is None:
        return None
    about = {"estimator": type(estimator).__name__, "method": method}
    for name, value in estimator.get_params(deep=False).items():
        if name not in INDIFFERENT:
            about[name] = _described(value)
    about |= {name: _described(value) for name, value in facts.items()}
    return Checkpoint(folder, every, about)


def _described(value):
    """A value as text that tells it from others."""
    if isinstance(value, np.random.RandomState):
        return "a RandomState"  # its state is in the checkpoint
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return f"an array of shape {value.shape} with digest {digest(value).hex()}"
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    text = repr(value)
    return text if len(text) <= LONG else f"{text[:LONG]}... with digest {digest(np.array(text)).hex()}"


# The random generator.


def random_state(seed, state=None):
    """The generator of a training, as it was when that began: cells are drawn before anything is saved."""
    random = fixed_random_state(seed)
    if state is None:
        return random
    if not isinstance(seed, np.random.RandomState):
        random = np.random.RandomState()  # never numpy's own, which belongs to everybody
    set_random_state(random, state, "began")
    return random


def set_random_state(random, state, when="random"):
    """Bring a generator to where it was when a checkpoint was saved."""
    key, numbers = state[f"{when}.key"], state[f"{when}.numbers"]
    random.set_state(("MT19937", key, int(numbers[0]), int(numbers[1]), float(numbers[2])))


def random_arrays(random, when="random"):
    """The state of a generator, as arrays."""
    state = random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(f"a checkpoint keeps the state of an MT19937 generator; got {state['bit_generator']}")
    numbers = np.array([state["state"]["pos"], state["has_gauss"], state["gauss"]], dtype=np.float64)
    return {f"{when}.key": state["state"]["key"].copy(), f"{when}.numbers": numbers}


# Solvers: all that they know is in the attributes named in SHARED, arrays that C knows the place of, and STATE.


def solver_arrays(solver):
    """The state of a solver, as arrays."""
    return {f"solver.{name}": np.asarray(getattr(solver, name)) for name in (*solver.SHARED, *solver.STATE)}


def restore_solver(solver, state):
    """Bring a new solver to where another one was. What it has taken over leaves the state, to free memory."""
    for name in solver.SHARED:
        getattr(solver, name)[...] = state.pop(f"solver.{name}")
    for name in solver.STATE:
        value = state.pop(f"solver.{name}")
        setattr(solver, name, value.item() if value.ndim == 0 else value)


# Trainings in memory, which are saved at the end of an epoch.


class Epochs:
    """What `train` keeps in a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where.
    state : dict or None
        What was in it.
    began : dict
        The state of the random generator when training began.
    """

    def __init__(self, checkpoint, state, began):
        self.checkpoint, self.state, self.began = checkpoint, state, began

    def resume(self, solver, observer):
        """(epochs that are done, how many of the last were slow, seconds, the last record); None: it is a new one."""
        state, self.state = self.state, None
        if state is None:
            return None
        restore_solver(solver, state)
        observer.rows = [(int(row[0]), *row[1:4], int(row[4]), row[5]) for row in state["history"].tolist()]
        n_iter, slow, seconds, active = state["progress"].tolist()
        record = Record(state["record.primal"], state["record.dual"], int(active), state["record.seen"])
        return int(n_iter), int(slow), seconds, record

    def save(self, solver, observer, n_iter, slow, seconds, record):
        """After an epoch, when it is time."""
        if not self.checkpoint.due(n_iter):
            return
        self.checkpoint.save(
            {
                **self.began,
                **random_arrays(solver.random),
                **solver_arrays(solver),
                "history": np.array(observer.rows, dtype=np.float64),
                "progress": np.array([n_iter, slow, seconds, record.active], dtype=np.float64),
                **{f"record.{name}": getattr(record, name) for name in ("primal", "dual", "seen")},
            }
        )


def digest(*arrays, before=b""):
    """A few bytes that tell arrays and sparse matrices from others."""
    total = blake2b(before, digest_size=16)
    for array in arrays:
        total.update(repr((array.shape, array.dtype.str)).encode())
        for part in (array.indptr, array.indices, array.data) if sparse.issparse(array) else (array,):
            if part.dtype.hasobject:
                total.update("\n".join(map(repr, part.ravel().tolist())).encode())
                continue
            dtype = np.int64 if part.dtype.kind == "i" else part.dtype  # scipy chooses the width of indices
            for some in pieces(part.reshape(-1)):
                total.update(np.ascontiguousarray(some, dtype=dtype).view(np.uint8).data)
    return total.digest()
