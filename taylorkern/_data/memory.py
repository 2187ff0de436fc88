"""How much memory there is, the refusal of what does not fit, and large tables."""

import mmap
import os
from contextlib import suppress
from math import prod

import numpy as np

LARGE_PAGES = 2**22  # bytes from which on they are asked for


def zeros(shape, dtype):
    """As np.zeros: memory that is not used until it is touched; but in large pages, where the system has them.

    Slots of a large table are all over it, and with small pages to find each one's place in memory takes longer than
    to read it. And a page that was read before it is first written is exchanged then, and all threads have to be told.
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < LARGE_PAGES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, dtype=dtype)
    try:
        memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{n_bytes} bytes cannot be had: {error}") from error
    with suppress(OSError):  # the system may know of none
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype=dtype).reshape(shape)


def available_memory():
    """Bytes that can be allocated now, or None where the system does not tell."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(n_bytes, memory_limit, what, remedy=None):
    """Refuse what does not fit, before it is allocated; `remedy` takes the limit, and tells in words what would fit."""
    limit, whose = limit_of(memory_limit), "free on this machine" if memory_limit is None else "allowed by memory_limit"
    if limit is not None and n_bytes > limit:
        instead = remedy(limit) if remedy else ""
        raise ValueError(
            f"{what} would take {n_bytes} bytes ({readable(n_bytes)}), more than the {readable(limit)} {whose}"
            f"{instead and '; '}{instead}"
        )


def limit_of(memory_limit):
    """How many bytes may be taken; None: nobody knows."""
    limit = memory_limit
    if limit is None:
        return available_memory()
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer) or not limit > 0:
        raise ValueError(f"memory_limit must be a number of bytes > 0 or None; got {memory_limit!r}")
    return limit


def readable(n_bytes):
    """12345678 -> '11.8 MiB'."""
    amount, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.4g} {unit}"
