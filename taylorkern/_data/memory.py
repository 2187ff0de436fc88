"""How much memory there is, and the refusal of what does not fit."""

import os

import numpy as np


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
