"""What names files: paths, patterns, lists of them."""

import glob
import os


def files(source):
    """The paths that a source names, and the files that it holds."""
    if isinstance(source, list | tuple):
        return [file for part in source for file in files(part)]
    if hasattr(source, "read"):
        return [source]
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be a path, a binary file or a list of them; got {type(source).__name__}")
    if isinstance(source, str) and glob.has_magic(source) and not os.path.exists(source):
        paths = sorted(glob.glob(source))
        if not paths:
            raise FileNotFoundError(f"no file is named like {source!r}")
        return paths
    return [source]
