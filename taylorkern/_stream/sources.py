"""Where the rows of a stream come from: folders of shards, tables, or anything that gives batches (X, y).

A source can be gone through several times, and gives the same batches each time. The one of svmlight files is in
stream.py.
"""

import os
import zipfile
from contextlib import closing

import numpy as np
from scipy import sparse

from .._data.expansion import CHUNK_ROWS
from .paths import files

SPARSE_PARTS, DENSE_PARTS = ("data", "indices", "indptr", "y"), ("X", "y")


class ShardFolder:
    """A folder of numpy files, whose rows are mapped into memory and not read whole.

    A shard is one file NAME.npz with the arrays data, indices, indptr, shape and y (as `scipy.sparse.save_npz` names
    them, and y), or X and y for dense rows; or a file for each array, NAME.data.npy and so on. Without shape, rows have
    as many columns as the shard's highest index asks for. Shards are read in the order of their names. Compressed .npz
    files are read whole, one at a time. `write_shards` makes such a folder.

    Parameters
    ----------
    folder : str or path-like
        The folder.
    batch_rows : int, default=8192
        Rows of a batch.

    Examples
    --------
    >>> import tempfile
    >>> from taylorkern.stream import ShardFolder, write_shards
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_shards(folder, [([[1.0, 0.0], [0.0, 2.0]], [1, -1]), ([[3.0, 4.0]], [1])])
    ...     [(X.shape, y.tolist()) for X, y in ShardFolder(folder)]
    [((2, 2), [1, -1]), ((1, 2), [1])]
    """

    def __init__(self, folder, *, batch_rows=CHUNK_ROWS):
        if isinstance(batch_rows, bool) or not isinstance(batch_rows, int | np.integer) or batch_rows < 1:
            raise ValueError(f"batch_rows must be an integer > 0; got {batch_rows!r}")
        self.folder, self.batch_rows = os.fspath(folder), int(batch_rows)
        if not os.path.isdir(self.folder):
            raise FileNotFoundError(f"there is no folder {self.folder!r}")

    def __iter__(self):
        names = sorted(name for name in os.listdir(self.folder) if not name.startswith("."))
        shards = [name for name in names if name.endswith((".npz", ".y.npy"))]
        if not shards:
            raise ValueError(f"{self.folder} has neither .npz files nor files named *.y.npy")
        for name in shards:
            yield from self._shard(os.path.join(self.folder, name))

    def _shard(self, path):
        arrays = _mapped_npz(path) if path.endswith(".npz") else _mapped_npy(path.removesuffix(".y.npy"))
        parts = DENSE_PARTS if "X" in arrays else SPARSE_PARTS
        missing = [part for part in parts if part not in arrays]
        if missing:
            raise ValueError(f"{path} has no array {missing[0]!r}")
        n_rows = len(arrays["y"])
        there = len(arrays["X"]) if "X" in arrays else len(arrays["indptr"]) - 1
        if there != n_rows:
            raise ValueError(f"{path} has {there} rows, and {n_rows} targets")
        for first in range(0, n_rows, self.batch_rows):
            last = min(first + self.batch_rows, n_rows)
            X = arrays["X"][first:last] if "X" in arrays else _slice(arrays, first, last, path)
            yield X, arrays["y"][first:last]


def _slice(arrays, first, last, path):
    """Some rows of a CSR matrix of which only the parts are there; what is wrong within them the caller sees."""
    indptr = np.asarray(arrays["indptr"][first : last + 1])
    begin, end = int(indptr[0]), int(indptr[-1])
    if not 0 <= begin <= end <= len(arrays["indices"]):
        raise ValueError(f"{path} has an indptr from {begin} to {end} for {len(arrays['indices'])} entries")
    indices, data = arrays["indices"][begin:end], arrays["data"][begin:end]
    n_columns = int(arrays["shape"][1]) if "shape" in arrays else int(arrays["indices"].max(initial=-1)) + 1
    return sparse.csr_array((data, indices, indptr - begin), shape=(last - first, n_columns))


def _mapped_npy(stem):
    """{what: array} of the files stem.what.npy."""
    found = {part: f"{stem}.{part}.npy" for part in {*SPARSE_PARTS, *DENSE_PARTS, "shape"}}
    return {part: np.load(path, mmap_mode="r") for part, path in found.items() if os.path.exists(path)}


def _mapped_npz(path):
    """{name: array} of an .npz file; those that are not compressed are mapped."""
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as member:
                    if info.compress_type != zipfile.ZIP_STORED:
                        arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
                        continue
                    arrays[name] = _mapped_member(path, info, member)
    except zipfile.BadZipFile as problem:
        raise ValueError(f"{path} is no .npz file: {problem}") from problem
    return arrays


def _mapped_member(path, info, member):
    """An array that lies in a zip file as it is."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(member)
    if dtype.hasobject:
        raise ValueError(f"{path} holds Python objects in {info.filename}; labels have to be numbers or strings")
    if 0 in shape:
        return np.empty(shape, dtype)
    with open(path, "rb") as file:
        file.seek(info.header_offset + 26)  # the lengths of two fields of the entry's own header, which is 30 bytes
        lengths = np.frombuffer(file.read(4), dtype="<u2")
    at = info.header_offset + 30 + int(lengths.sum()) + member.tell()
    return np.memmap(path, dtype=dtype, mode="r", offset=at, shape=shape, order="F" if in_columns else "C")


def write_shards(folder, source):
    """Write batches to a folder that `ShardFolder` reads: for several epochs over text, which then is parsed once.

    Parameters
    ----------
    folder : str or path-like
        Where to; it is made when it is not there, and has to be empty.
    source : source of batches
        As for `fit_stream`. Each batch becomes a shard.
    """
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise ValueError(f"{os.fspath(folder)} is not empty")
    for number, (X, y) in enumerate(as_source(source)()):
        if sparse.issparse(X):
            X = sparse.csr_array(X)
            arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        else:
            arrays = {"X": np.asarray(X)}
        np.savez(os.path.join(folder, f"part-{number:06}.npz"), y=np.asarray(y), **arrays)


class TableFiles:
    """Parquet or CSV files with named columns, one of which is the target.

    They are read by pyarrow; CSV files by pandas where that is not installed. Columns of all files are those of the
    first one, in its order. Batches are data frames where pandas is installed, so that the model knows the names.

    Parameters
    ----------
    source : str, path-like, or a list of them
        Paths of files, or patterns, as in "part-*.parquet". CSV files have names in their first line.
    target : str
        The column to be predicted.
    columns : list of str, default=None
        The columns to learn from; None: all others.
    batch_rows : int, default=8192
        Rows of a batch; from CSV files about as many.

    Examples
    --------
    >>> from taylorkern.stream import TableFiles
    >>> source = TableFiles("flights-*.parquet", target="delayed")
    >>> model.fit_stream(source, classes=[0, 1])  # doctest: +SKIP
    """

    def __init__(self, source, *, target, columns=None, batch_rows=CHUNK_ROWS):
        self.source, self.target, self.columns, self.batch_rows = source, target, columns, batch_rows

    def __iter__(self):
        columns = None if self.columns is None else list(self.columns)
        for path in files(self.source):
            with closing(self._frames(os.fspath(path))) as frames:
                for names, pick in frames:
                    if columns is None:
                        columns = [name for name in names if name != self.target]
                    missing = [name for name in (self.target, *columns) if name not in names]
                    if missing:
                        raise ValueError(f"{os.fspath(path)} has no column {missing[0]!r}; it has {', '.join(names)}")
                    yield pick(columns), np.asarray(pick([self.target]))[:, 0]

    def _frames(self, path):
        """(names of columns, what makes rows of some of them) for each batch."""
        if path.endswith(".parquet"):
            parquet = _imported("pyarrow.parquet", path)
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=self.batch_rows):
                    yield batch.schema.names, _picker(batch)
            return
        try:
            from pyarrow import csv
        except ImportError:
            pandas = _imported("pandas", path)
            with pandas.read_csv(path, chunksize=self.batch_rows) as frames:
                for frame in frames:
                    yield list(frame.columns), frame.__getitem__
            return
        with csv.open_csv(path) as batches:
            for batch in batches:
                yield batch.schema.names, _picker(batch)


def _picker(batch):
    """Columns of an Arrow batch: as a data frame where there is pandas, else as an array."""

    def pick(names):
        some = batch.select(names)
        try:
            import pandas  # noqa: F401
        except ImportError:
            return np.column_stack([column.to_numpy(zero_copy_only=False) for column in some.columns])
        return some.to_pandas()

    return pick


def _imported(module, path):
    try:
        return __import__(module, fromlist=["*"])
    except ImportError as problem:
        raise ImportError(f"to read {path} taylorkern needs {module.split('.')[0]}: {problem}") from problem


def as_source(source, n_passes=1):
    """What the user gave -> a function that begins a pass: it returns an iterator of batches.

    A ValueError when the batches come only once, and more passes than that are needed.
    """
    listed = isinstance(source, list | tuple) and len(source) > 0
    if isinstance(source, str | os.PathLike) or (listed and isinstance(source[0], str | os.PathLike)):
        return _files(source).__iter__
    if callable(source) and not hasattr(source, "__iter__"):
        return lambda: iter(source())
    if not hasattr(source, "__iter__"):
        raise TypeError(
            "source must be paths of files, a folder, something that gives batches (X, y), or a function that returns "
            f"such; got {type(source).__name__}"
        )
    if hasattr(source, "__next__") and n_passes > 1:
        raise ValueError(
            f"the source is an iterator, which can be gone through once, and this training takes {n_passes} passes: "
            "give a list, an object with __iter__, or a function that returns a new iterator each time"
        )
    return source.__iter__


def _files(source):
    """The source for paths, by what they are."""
    from ..stream import SvmlightFiles  # which is made of what is here

    found = files(source)
    if len(found) == 1 and os.path.isdir(found[0]):
        return ShardFolder(found[0])
    if any(os.fspath(path).endswith((".parquet", ".csv")) for path in found):
        raise ValueError(
            "in Parquet and CSV files the target has a name: pass taylorkern.stream.TableFiles(..., target=...)"
        )
    return SvmlightFiles(source)
