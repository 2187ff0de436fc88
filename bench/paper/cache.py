"""Results by what was asked for: small JSON files, so that a run that was stopped goes on where it was."""

import json
import os
from hashlib import sha256
from pathlib import Path
from time import perf_counter

VERSION = 1  # raise when a piece of work begins to mean something else


def default_folder():
    """Of this user, outside of the project."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "taylorkern-paper"


class Results:
    """The results that there are, and how to get more.

    A job is a dict of plain values: "work" names what is done, "set" the data, the others are its settings. A result
    is a dict of numbers. Parts of the page that ask for the same job share its result.
    """

    def __init__(self, folder, measure):
        self.folder, self.measure = Path(folder), measure
        self.folder.mkdir(parents=True, exist_ok=True)

    def find(self, job):
        """Job and result in one dict; None when there is no result yet."""
        path = self._path(job)
        return job | json.loads(path.read_text())["result"] if path.exists() else None

    def all_of(self, jobs):
        """What `find` gives for each; None when one is missing."""
        found = [self.find(job) for job in jobs]
        return None if None in found else found

    def complete(self, part, jobs):
        """Do all that is missing, and say so."""
        missing = [job for job in jobs if self.find(job) is None]
        print(f"{part}: {len(jobs)} results, {len(jobs) - len(missing)} of them known", flush=True)
        for done, job in enumerate(missing, 1):
            print(f"  {done}/{len(missing)} {describe(job)} ...", end="", flush=True)
            start = perf_counter()
            result = self.measure(job)
            self._save(job, result)
            print(f" {perf_counter() - start:.1f} s  {describe(result)}", flush=True)

    def _path(self, job):
        text = json.dumps([VERSION, job], sort_keys=True)
        return self.folder / f"{job['work']}-{sha256(text.encode()).hexdigest()[:16]}.json"

    def _save(self, job, result):
        """Whole or not at all."""
        path = self._path(job)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({"job": job, "result": result}, indent=1))
        os.replace(unfinished, path)


def describe(values):
    """In one line."""
    return ", ".join(f"{key} {short(value)}" for key, value in values.items() if value is not None)


def short(value):
    """A number with few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
