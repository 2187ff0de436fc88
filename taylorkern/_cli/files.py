"""Files of the command line: - for the standard streams, and no half of a file under its own name."""

import os
import stat
import sys
from contextlib import contextmanager, suppress

from ..cli import Usage


def source(name):
    """What to read rows from."""
    return sys.stdin.buffer if name == "-" else name


def check_output(name, *inputs):
    """Refuse now what could not be written after all the work is done."""
    if name == "-":
        return
    for path in inputs:
        if path != "-" and os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise Usage(f"{name} would be written over while it is read")
    if os.path.isdir(name):
        raise Usage(f"{name} is a folder")
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        raise Usage(f"there is no folder {folder}")
    if not os.access(folder if is_plain(name) else name, os.W_OK):
        raise PermissionError(f"{name} cannot be written")


def is_plain(name):
    """Whether a name is, or would be, that of an ordinary file: not a pipe, nor a device."""
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return True


@contextmanager
def written(name):
    """A binary file to write to, which takes its place when all went well. Pipes and devices are written directly."""
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not is_plain(name):
        with open(name, "wb") as file:
            yield file
        return
    name = os.path.realpath(name)
    temporary = os.path.join(os.path.dirname(name), f".taylorkern-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        if os.path.exists(name):
            os.chmod(temporary, stat.S_IMODE(os.stat(name).st_mode))
        os.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
