"""Files larger than memory, for `fit_stream`: svmlight files, folders of shards, Parquet and CSV.

svmlight files become rows, at once or batch by batch, with exactly the numbers that scikit-learn's loader gives. A line
of such a file has a label and then pairs index:value with rising indices:

    -1 3:1 11:0.25 14:-2e-3 # a comment

What is not so is refused, with file, line and column.
"""

import io
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise

import numpy as np

from . import _svmlight
from ._data.expansion import CHUNK_ROWS, MAX_COLUMNS, check_count
from ._stream.paths import files

BLOCK = 2**18  # bytes of text that are read at once
BATCH_BYTES = 2**24
MOST = 2**62  # rows or bytes of a batch: a number for C
AMPLE = 1.05  # how much more memory is asked for than the first lines suggest
FIRST_INDEX = {True: 0, False: 1, "auto": -1}
UNPACKED_BY = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # modules that are imported when such a file comes
SHOWN = 40  # characters of what is wrong

__all__ = ["ShardFolder", "SvmlightFiles", "TableFiles", "iter_svmlight", "read_svmlight", "write_shards"]  # noqa: F822 (some come below)


def __getattr__(name):
    if name not in ("ShardFolder", "TableFiles", "write_shards"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._stream import sources  # with scipy, which the reader below does without

    return getattr(sources, name)


def read_svmlight(file, *, n_features=None, dtype=np.float64, zero_based="auto", multilabel=False):
    r"""Read a file in svmlight format.

    It takes as much memory as the result, and some megabytes.

    Parameters
    ----------
    file : str, path-like, binary file or bytes
        A path, where .gz, .bz2 and .xz are unpacked; something to `read` from; or the text itself, when it is bytes.
    n_features : int, default=None
        The number of columns. None: one for each index up to the highest that occurs.
    dtype : {float64, float32}, default=float64
        The type of X.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices begin at 0 or at 1. "auto": at 0 if an index of 0 occurs, else at 1.
    multilabel : bool, default=False
        Whether a row has any number of labels, separated by commas.

    Returns
    -------
    X : sparse matrix in CSR format of shape (n_samples, n_features)
        Indices rise in each row. Zeros that the file has are stored.
    y : ndarray of shape (n_samples,), of float64
        Or, with `multilabel`, a list of tuples of floats, each in rising order.

    Examples
    --------
    >>> from taylorkern.stream import read_svmlight
    >>> X, y = read_svmlight(b"1 1:0.5 3:2\n-1 2:1e-3  # two rows\n")
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]], [1.0, -1.0])
    """
    form = _Form(n_features, dtype, zero_based, multilabel)
    reader = form.reader()
    for _ in _fill(reader, [file], whole=True):
        pass
    form.settle(reader)
    return form.rows(reader)


def iter_svmlight(
    source,
    *,
    batch_rows=None,
    batch_bytes=None,
    n_features=None,
    dtype=np.float64,
    zero_based="auto",
    multilabel=False,
):
    """Read files in svmlight format batch by batch, in memory that is bounded by that of a batch.

    Parameters
    ----------
    source : str, path-like, binary file, or a list of them
        Paths of files, or things to `read` from, read one after the other as if they were one. A string that is not the
        name of a file may be a pattern, as in "part-*.gz", for files in the order of their names.
    batch_rows : int, default=None
        Rows of a batch; the last one may have fewer.
    batch_bytes : int, default=None
        Instead: a batch ends with the row by which it takes so many bytes of memory. By default 16 MB.
    n_features, dtype, zero_based, multilabel
        As for `read_svmlight`. With n_features=None or zero_based="auto" all files are first read once to find out;
        give both to read them only once, as has to be with the standard input and other binary files that cannot go
        back to where they were.

    Returns
    -------
    batches : iterator of (X, y)
        The rows of all batches together are what `read_svmlight` gives. No batch is empty.

    Examples
    --------
    >>> from taylorkern.stream import iter_svmlight
    >>> for X, y in iter_svmlight("rows-*.svm.gz", batch_rows=1000):  # doctest: +SKIP
    ...     model.partial_fit(X, y, classes=[-1, 1])
    """
    if batch_rows is None and batch_bytes is None:
        batch_bytes = BATCH_BYTES
    options = {"n_features": n_features, "dtype": dtype, "zero_based": zero_based, "multilabel": multilabel}
    return iter(SvmlightFiles(source, batch_rows=batch_rows, batch_bytes=batch_bytes, **options))


class SvmlightFiles:
    """Files in svmlight format as a source of batches for `fit_stream`, which may go through them several times.

    Parameters are those of `iter_svmlight`, but that a batch has 8192 rows by default. What a first reading has found
    out is remembered.

    Examples
    --------
    >>> from taylorkern.stream import SvmlightFiles
    >>> source = SvmlightFiles("rows-*.svm.gz", n_features=40, zero_based=False)  # doctest: +SKIP
    >>> model.fit_stream(source, classes=[-1, 1])  # doctest: +SKIP
    """

    def __init__(
        self,
        source,
        *,
        batch_rows=None,
        batch_bytes=None,
        n_features=None,
        dtype=np.float64,
        zero_based="auto",
        multilabel=False,
    ):
        self._form = form = _Form(n_features, dtype, zero_based, multilabel)
        if batch_rows is not None and batch_bytes is not None:
            raise ValueError("give batch_rows or batch_bytes, not both")
        if batch_bytes is None:
            batch_rows = CHUNK_ROWS if batch_rows is None else batch_rows
            check_count("batch_rows", batch_rows)
            self._cost = 1, 0, min(batch_rows, MOST)
        else:
            check_count("batch_bytes", batch_bytes)
            self._cost = 16, 4 + form.dtype.itemsize, min(batch_bytes, MOST)
        self._files = files(source)

    def __iter__(self):
        return _batches(self._form, self._files, self._cost, self._form.rows)


def iter_arrays(source, *, n_features, dtype, zero_based):
    """`iter_svmlight` without scipy: each batch is ((data, indices, indptr), labels)."""
    form = _Form(n_features, dtype, zero_based, multilabel=False)
    cost = 16, 4 + form.dtype.itemsize, BATCH_BYTES // 4  # for who keeps no batch: smaller ones stay in the caches
    return _batches(form, files(source), cost, lambda reader: form.arrays(reader)[:2])


def _batches(form, files, cost, rows):
    """Batches as rows(reader) makes them."""
    if not form.settled:
        begins = [_place(file) for file in files]
        reader = form.reader(1, 1, 2**16)
        for _ in _fill(reader, files):
            reader.clear()
        form.settle(reader)
        for file, begin in zip(files, begins, strict=True):
            if begin is not None:
                file.seek(begin)
    reader = form.reader(*cost)
    for _ in _fill(reader, files):
        yield rows(reader)
    if reader.n_rows:
        yield rows(reader)


def _place(file):
    """Where a binary file stands, to go back to; None for a path."""
    if not hasattr(file, "read"):
        return None
    if not (hasattr(file, "seekable") and file.seekable()):
        name = getattr(file, "name", "<file>")
        raise ValueError(f"{name} can be read only once: give n_features, and zero_based as True or False")
    return file.tell()


class _Form:
    """What is known of the rows before they are read, or once they all have been."""

    def __init__(self, n_features, dtype, zero_based, multilabel):
        if n_features is not None:
            check_count("n_features", n_features)
            if n_features > MAX_COLUMNS:
                raise ValueError(f"n_features is {n_features}; at most {MAX_COLUMNS} columns can be numbered")
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32; got {dtype!r}")
        if not (isinstance(zero_based, bool | np.bool_) or (isinstance(zero_based, str) and zero_based == "auto")):
            raise ValueError(f"zero_based must be True, False or 'auto'; got {zero_based!r}")
        self.n_features, self.first_index = n_features, FIRST_INDEX[zero_based]
        self.multilabel = bool(multilabel)

    @property
    def settled(self):
        """Whether nothing is left to be seen from the files."""
        return self.n_features is not None and self.first_index >= 0

    def reader(self, row_cost=0, entry_cost=0, enough=1):
        """A reader that stops when row_cost * rows + entry_cost * entries >= enough; by default only at the end."""
        n_columns = MAX_COLUMNS if self.n_features is None else self.n_features
        return _svmlight.Svmlight(
            self.dtype.itemsize, self.first_index, n_columns, self.multilabel, row_cost, entry_cost, enough
        )

    def settle(self, reader):
        """Take over what a reader has seen by the end of the files."""
        if self.first_index < 0:
            self.first_index = 0 if reader.first_index == 0 else 1
        if self.n_features is None:
            self.n_features = max(reader.max_index - self.first_index + 1, 1)

    def arrays(self, reader):
        """((data, indices, indptr), labels, where the labels of each row end) of the rows that a reader has."""
        values, indices, indptr, labels, label_ptr = reader.take()
        indices = np.frombuffer(indices, dtype=np.int32)
        if self.first_index:
            indices -= 1
        entries = np.frombuffer(values, dtype=self.dtype), indices, np.frombuffer(indptr, dtype=np.int64)
        return entries, np.frombuffer(labels, dtype=np.float64), label_ptr

    def rows(self, reader):
        """(X, y) of the rows that a reader has."""
        from .features import csr_type  # here, since it brings scipy and scikit-learn with it

        entries, y, label_ptr = self.arrays(reader)
        X = csr_type(None)(entries, shape=(len(entries[2]) - 1, self.n_features))
        X.has_canonical_format = True
        if not self.multilabel:
            return X, y
        ends = np.frombuffer(label_ptr, dtype=np.int64).tolist()
        y = y.tolist()
        return X, [tuple(sorted(y[i:j])) for i, j in pairwise(ends)]


def _fill(reader, files, whole=False):
    """Let a reader read files; gives a turn whenever it is full, in which its rows are to be taken.

    `whole` says that it will never be: where a file's size is known, memory for all of it is then asked for at once.
    """
    for file in files:
        with _opened(file) as (stream, name, n_bytes):
            n_lines = n_read = 0
            for block in _blocks(stream, name):
                n_read += len(block)
                n_more, at = reader.feed(block, max(AMPLE * n_bytes / n_read, 1) if whole else 1), 0
                while at < len(block):
                    problem, at = reader.read()
                    if problem is not None:
                        raise ValueError(_message(name, n_lines, block, at, problem))
                    if reader.full:
                        yield
                n_lines += n_more


def _blocks(stream, name):
    """The text in pieces of whole lines."""
    pieces: list[bytes] = []
    while True:
        try:
            chunk = stream.read(BLOCK)
        except _broken() as error:
            if getattr(error, "errno", None) is not None:  # the system's, who says more himself
                raise
            raise ValueError(f"{name} cannot be unpacked: {error}") from error
        if not isinstance(chunk, bytes):
            raise TypeError(f"{name} gives {type(chunk).__name__}, not bytes: it has to be opened in binary mode")
        if not chunk:
            break
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*pieces, memoryview(chunk)[:end]])
            pieces = [chunk[end:]]
        else:
            pieces.append(chunk)
    if any(pieces):
        yield b"".join([*pieces, b"\n"])


def _broken():
    """What unpacking raises when a file is spoilt; a module that has not been imported has raised nothing."""
    special = {"zlib": "error", "lzma": "LZMAError"}
    own = [getattr(sys.modules[name], error) for name, error in special.items() if name in sys.modules]
    return EOFError, OSError, *own


@contextmanager
def _opened(file):
    """(something to read bytes from, its name, its size or 0); what was opened here is closed again."""
    if isinstance(file, bytes | bytearray | memoryview):
        yield io.BytesIO(file), "<bytes>", len(file)
    elif hasattr(file, "read"):
        yield file, str(getattr(file, "name", "<file>")), 0
    elif isinstance(file, str | os.PathLike):
        ending = os.path.splitext(file)[1]
        packed = ending in UNPACKED_BY
        with (import_module(UNPACKED_BY[ending]).open if packed else open)(file, "rb") as stream:
            yield stream, os.fspath(file), 0 if packed else os.fstat(stream.fileno()).st_size
    else:
        raise TypeError(f"file must be a path, a binary file or bytes; got {type(file).__name__}")


def _message(name, n_lines, block, at, problem):
    """The sentence on what is wrong at block[at], with n_lines before this block."""
    line = n_lines + block.count(b"\n", 0, at) + 1
    column = at - block.rfind(b"\n", 0, at)
    seen = block[at : at + SHOWN + 1].split(b"\n")[0].split(b"#")[0]
    seen = seen.split(None, 1)[0] if seen[:1].strip() else b""
    shown = repr(seen[:SHOWN] + (b"..." if len(seen) > SHOWN else b""))[1:]  # without the b of bytes
    return f"{name}, line {line}, column {column}: {problem.format(seen=shown)}"
