"""The table that the benchmarks print: one line per comparison, with its target."""

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass

import numpy as np
import scipy
import sklearn

import taylorkern
from taylorkern import _core


@dataclass(frozen=True)
class Row:
    """One comparison: `figure` is what the target is about, and comes from `ours` and `peer`."""

    part: str
    work: str
    peer_name: str
    unit: str  # of ours and peer
    ours: float
    peer: float | None
    figure: float
    figure_unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The target in words; empty when there is none."""
        if self.at_least is not None:
            return f">= {self.at_least:g}{self.figure_unit}"
        if self.at_most is not None:
            return f"<= {self.at_most:g}{self.figure_unit}"
        return ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.at_least is not None:
            return bool(self.figure >= self.at_least)
        if self.at_most is not None:
            return bool(self.figure <= self.at_most)
        return None


COLUMNS = "{:<4} {:<54} {:<26} {:<14} {:>9} {:>9} {:>9} {:>9}  {:<3}"


def print_header(out=None):
    """The head of the table."""
    line = COLUMNS.format("part", "work", "against", "unit", "ours", "peer", "figure", "target", "met")
    print(f"{line}\n{'-' * len(line)}", file=out or sys.stdout, flush=True)


def print_row(row: Row, out=None):
    """One line of the table, at once: rows take a while."""
    peer = "" if row.peer is None else f"{row.peer:.3g}"
    met = {None: "", True: "yes", False: "no"}[row.met]
    figure = f"{row.figure:.3g}{row.figure_unit}"
    line = COLUMNS.format(row.part, row.work, row.peer_name, row.unit, f"{row.ours:.3g}", peer, figure, row.target, met)
    print(line.rstrip(), file=out or sys.stdout, flush=True)


def machine() -> dict[str, object]:
    """What the figures depend on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "instruction_set": _core.instruction_set(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "taylorkern": taylorkern.__version__,
    }


def print_machine(out=None):
    """One line on the machine: figures without it mean little."""
    print(", ".join(f"{key} {value}" for key, value in machine().items()), file=out or sys.stdout, flush=True)


def dump(rows, path, **more):
    """Rows and machine as JSON, and what else there is to tell."""
    records = [asdict(row) | {"target": row.target, "met": row.met} for row in rows]
    with open(path, "w") as file:
        json.dump({"machine": machine(), **more, "rows": records}, file, indent=1)


def _cpu():
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
