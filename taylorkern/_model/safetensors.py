"""Safetensors files whose two halves vouch for each other: written piece by piece, checked before they are read.

    8 bytes    the length of the header, little-endian
    header     JSON: {"__metadata__": {"sha256": ..., ...}, name: {"dtype", "shape", "data_offsets"}, ...}
    payload    the tensors, one after the other

"sha256" is the digest of the payload. The last tensor is the digest of everything before the payload, with 64 zeros in
the place of "sha256". So no bit can change unnoticed, and a header goes with no payload but its own.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from math import isfinite, prod
from typing import NamedTuple

import numpy as np

MAX_HEADER = 2**20
MAX_NUMBER = 2**63 - 1  # of a size or an offset
MAX_DIMENSIONS = 8
CHUNK = 2**20  # bytes that are read or written at once

START = b'{"__metadata__":{"sha256":"'
DIGEST_AT, DIGEST_SIZE = 8 + len(START), 64
HEADER_DIGEST = "header_sha256"

DTYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"{letter}{8 * size}": np.dtype(f"<{letter.lower()}{size}") for letter in "IU" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Tensor(NamedTuple):
    """What is to be written: `parts()` makes its numbers, some at a time."""

    dtype: np.dtype
    shape: tuple[int, ...]
    parts: Callable[[], Iterator[np.ndarray]]


def tensor(array):
    """An array as it is."""
    flat = np.asarray(array).reshape(-1)
    return Tensor(flat.dtype, np.shape(array), lambda: pieces(flat))


def pieces(array):
    """An array by slices of about CHUNK bytes, each of 8 k rows."""
    step = max(8, CHUNK // max(array[:1].nbytes, 1) // 8 * 8)
    for first in range(0, len(array), step):
        yield array[first : first + step]


# Writing.


def write(stream, metadata, tensors, any_number=()):
    """Write a file.

    Parameters
    ----------
    stream : binary file
        Empty, and open for writing at any place.
    metadata : dict of str to str
        What the header says besides the tensors.
    tensors : dict of str to Tensor
        The payload. Larger numbers come first, so that each tensor is aligned.
    any_number : sequence of str
        Tensors that may hold infinity and NaN. In others they are a ValueError.
    """
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize))
    tensors[HEADER_DIGEST] = Tensor(DTYPES["U8"], (32,), lambda: iter([own_digest]))
    start = _start(metadata, tensors)
    own_digest = np.frombuffer(sha256(start).digest(), dtype=np.uint8)
    stream.write(start)
    digest = sha256()
    for name, (dtype, _, parts) in tensors.items():
        for part in parts():
            if name not in any_number:
                _check_finite(name, part)
            data = np.ascontiguousarray(part, dtype=dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
            digest.update(data.data)
            stream.write(data)
    stream.seek(DIGEST_AT)
    stream.write(digest.hexdigest().encode())


def _start(metadata, tensors):
    """Everything before the payload, with zeros for its digest."""
    header: dict = {"__metadata__": {"sha256": "0" * DIGEST_SIZE, **metadata}}
    end = 0
    for name, (dtype, shape, _) in tensors.items():
        known = NAMES.get(dtype.newbyteorder("<"))
        if known is None:
            raise ValueError(f"{name} holds numbers of the type {dtype}, for which the file has none")
        begin, end = end, end + prod(shape) * dtype.itemsize
        header[name] = {"dtype": known, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"the header would take {len(text)} bytes, more than {MAX_HEADER}; give long parameters as numpy arrays"
        )
    return len(text).to_bytes(8, "little") + text


def write_atomically(path, fill):
    """Let fill(stream) write a file, which takes its place when it is whole and on the disk; else nothing changes."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".taylorkern-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        with suppress(OSError):  # some file systems cannot do it
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


# Reading.


class Reader:
    """A file whose header, sizes and digests are right. Tensors are then read one by one.

    Parameters
    ----------
    stream : binary file
        Where it comes from.
    size : int
        How many bytes there are.
    check_metadata : callable
        Told of the metadata before anything else is looked at, so that it can refuse other formats and versions.

    Attributes
    ----------
    metadata : dict of str to str
        What the header says, without the digest.
    tensors : dict of str to Stored
        All tensors, without the digest.
    n_bytes : int
        The size of the payload.
    """

    def __init__(self, stream, size, check_metadata):
        self._stream = stream
        self._at, header = self._read_header(size)
        self.n_bytes = size - self._at
        metadata = header.pop("__metadata__")
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("the metadata are not strings")
        check_metadata(metadata)
        digest = metadata.pop("sha256")
        self.metadata = metadata
        self.tensors = self._layout(header)
        self._check_digests(digest)

    def _read_header(self, size):
        """(where the payload begins, the header)."""
        if size < 8:
            raise ValueError(f"it has {size} bytes, too few for a model file")
        length = int.from_bytes(self._bytes(0, 8), "little")
        if length > MAX_HEADER:
            raise ValueError(f"it claims a header of {length} bytes, more than {MAX_HEADER}: no model file")
        if 8 + length > size:
            raise ValueError(f"it is cut off: it has {size} bytes, and its header alone takes {8 + length}")
        text = self._bytes(8, length)
        try:
            header = parse(text.decode(), "the header")
        except UnicodeDecodeError as problem:
            raise ValueError(f"the header is not UTF-8: {problem}") from None
        if not isinstance(header, dict):
            raise ValueError("the header is not a JSON object")
        if not text.startswith(START) or text[DIGEST_AT - 8 + DIGEST_SIZE :][:1] != b'"':
            raise ValueError("it is no model file of taylorkern: its header does not begin with a digest")
        return 8 + length, header

    def _layout(self, header):
        """The tensors, which have to fill the payload."""
        tensors, end = {}, 0
        for name, entry in header.items():
            if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
                raise ValueError(f"the header's entry for {name!r} is not that of a tensor: {_short(entry)}")
            shape, offsets, dtype = entry["shape"], entry["data_offsets"], entry["dtype"]
            if not isinstance(dtype, str) or dtype not in DTYPES:
                raise ValueError(f"{name} has the dtype {_short(dtype)}, which is not known")
            if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
                raise ValueError(f"{name} has the shape {_short(shape)}, which is none")
            if not _are_sizes(offsets) or len(offsets) != 2:
                raise ValueError(f"{name} has the data_offsets {_short(offsets)}, which are none")
            n_bytes = prod(shape) * DTYPES[dtype].itemsize
            if offsets != [end, end + n_bytes]:
                raise ValueError(
                    f"{name} of the shape {shape} and dtype {dtype} has to lie at {[end, end + n_bytes]}; the header "
                    f"says {offsets}"
                )
            tensors[name] = Stored(self, name, DTYPES[dtype], tuple(shape), self._at + end)
            end += n_bytes
        if end != self.n_bytes:
            raise ValueError(f"its tensors take {end} bytes, and there are {self.n_bytes}")
        return tensors

    def _check_digests(self, digest):
        """Refuse a header or a payload in which a bit has changed."""
        own = self.tensors.pop(HEADER_DIGEST, None)
        if own is None or own.dtype != np.uint8 or own.shape != (32,):
            raise ValueError(f"it has no tensor {HEADER_DIGEST} of 32 bytes")
        start = bytearray(self._bytes(0, self._at))
        start[DIGEST_AT : DIGEST_AT + DIGEST_SIZE] = b"0" * DIGEST_SIZE
        if sha256(start).digest() != own.read().tobytes():
            raise ValueError("the header's checksum is wrong: it has been changed or damaged")
        seen, buffer = sha256(), np.empty(min(CHUNK, self.n_bytes), dtype=np.uint8)
        for first in range(0, self.n_bytes, CHUNK):
            part = buffer[: min(CHUNK, self.n_bytes - first)]
            self.fill(part, self._at + first)
            seen.update(part.data)
        if seen.hexdigest() != digest:
            raise ValueError("the payload's checksum is wrong: it has been changed or damaged")

    def _bytes(self, at, count):
        data = np.empty(count, dtype=np.uint8)
        self.fill(data, at)
        return data.tobytes()

    def fill(self, array, at):
        """Fill an array with the bytes that begin at this place of the file."""
        self._stream.seek(at)
        rest = memoryview(array.view(np.uint8))
        while len(rest):
            n = self._stream.readinto(rest)
            if not n:
                raise ValueError("it is cut off: it has become shorter while it was read")
            rest = rest[n:]


class Stored:
    """A tensor in a file, to be read whole or some numbers at a time.

    Attributes
    ----------
    name : str
        What the header calls it.
    dtype : dtype
        Of its numbers.
    shape : tuple of int
        Its shape.
    size, n_bytes : int
        How many numbers it has, and bytes.
    """

    def __init__(self, reader, name, dtype, shape, at):
        self.name, self.dtype, self.shape, self.size = name, dtype, shape, prod(shape)
        self.n_bytes = self.size * dtype.itemsize
        self._reader, self._at, self._left = reader, at, self.size

    def take(self, count, any_number=False):
        """The next numbers."""
        if count > self._left:
            raise ValueError(f"{self.name} has {self.size} numbers, and more are needed")
        numbers = np.empty(count, dtype=self.dtype)
        self._reader.fill(numbers, self._at)
        self._at, self._left = self._at + numbers.nbytes, self._left - count
        if self.dtype == np.bool_:
            for part in pieces(numbers.view(np.uint8)):
                if part.max() > 1:
                    raise ValueError(f"{self.name} has bytes other than 0 and 1")
        if not any_number:
            for part in pieces(numbers):
                _check_finite(self.name, part)
        return numbers.astype(self.dtype.newbyteorder("="), copy=False)

    def check_end(self):
        """Refuse numbers that nobody has taken."""
        if self._left:
            raise ValueError(f"{self.name} has {self.size} numbers, {self._left} too many")

    def read(self, any_number=False):
        """All numbers, in their shape."""
        return self.take(self.size, any_number).reshape(self.shape)


def parse(text, what):
    """JSON without duplicate keys, and without numbers that are not finite."""
    try:
        return json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_finite_number, parse_float=_finite_number
        )
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply") from None
    except ValueError as problem:
        raise ValueError(f"{what} is not as JSON should be: {problem}") from None


def _without_duplicates(pairs):
    found: dict = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} comes twice")
        found[key] = value
    return found


def _finite_number(text):
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number


def _check_finite(name, numbers):
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise ValueError(f"{name} has numbers that are not finite")


def _are_sizes(value):
    return isinstance(value, list) and all(type(entry) is int and 0 <= entry <= MAX_NUMBER for entry in value)


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
