from typing import Any

import numpy as np
from numpy.typing import NDArray

_Real = NDArray[np.float32] | NDArray[np.float64]
_Index = NDArray[np.int32] | NDArray[np.int64]
_Scratch = NDArray[np.uint8]

MAX_DENSE_COLUMNS: int
CELL_GROUP: int

class Rows:
    data: _Real
    indices: NDArray[np.int32] | None
    indptr: NDArray[np.int64] | None
    order: NDArray[np.int32] | None
    place: NDArray[np.int32] | None
    n_rows: int
    n_columns: int
    itemsize: int
    max_nonzeros: int
    walk_dense: bool
    base: NDArray[np.int64] | None
    beyond: NDArray[np.float64] | None
    factor: NDArray[np.float64] | None
    next: Rows | None
    n_slots: int
    def __init__(
        self,
        data: _Real,
        indices: NDArray[np.int32] | None,
        indptr: NDArray[np.int64] | None,
        n_columns: int,
        max_nonzeros: int = -1,
    ) -> None: ...
    def set_cells(self, base: NDArray[np.int64] | None, beyond: NDArray[np.float64] | None, n_slots: int) -> None: ...
    def set_factor(self, factor: NDArray[np.float64]) -> None: ...
    def set_next(self, other: Rows) -> None: ...
    def set_order(self, order: NDArray[np.int32]) -> None: ...
    def set_place(self, place: NDArray[np.int32], n_front: int, n_columns: int) -> None: ...

class Map:
    degree: int
    n_columns: int
    n_slots: int
    def __init__(
        self,
        scale: float,
        decay: float,
        unit: bool,
        ranks: NDArray[np.int64],
        constant: NDArray[np.float64],
        repeat: NDArray[np.float64],
        series: NDArray[np.float64],
        bare: bool,
    ) -> None: ...

def scratch_bytes(rows: Rows) -> int: ...
def factors(rows: Rows, map: Map, first: int, last: int, s: NDArray[np.float64]) -> None: ...
def dot(rows: Rows, map: Map, first: int, last: int, table: _Real, out: _Real, scratch: _Scratch) -> None: ...
def dot_in_order(
    rows: Rows,
    map: Map,
    first: int,
    order: NDArray[np.int32],
    table: _Real,
    out: _Real,
    scratch: _Scratch,
) -> None: ...
def add(
    rows: Rows,
    map: Map,
    first: int,
    last: int,
    table: _Real,
    t: _Real,
    scratch: _Scratch,
    top: int = 0,
    end: int = -1,
) -> None: ...
def expand(rows: Rows, map: Map, first: int, last: int, slots: _Index, values: _Real, scratch: _Scratch) -> None: ...
def weigh_scratch_bytes(map: Map, itemsize: int) -> int: ...
def weigh(map: Map, first: int, last: int, table: _Real, scratch: _Scratch) -> None: ...
def gram_scratch_bytes(rows: Rows, n: int) -> int: ...
def gram(rows: Rows, map: Map, first: int, last: int, out: NDArray[np.float64], scratch: _Scratch) -> None: ...
def adapt(
    rows: Rows,
    map: Map,
    first: int,
    last: int,
    values: _Real,
    squares: _Real,
    eta: float,
    t: _Real,
    scratch: _Scratch,
) -> None: ...
def all_finite(values: _Real, nonzero: bool = False) -> bool: ...
def count_nonzeros(rows: Rows, first: int, last: int, counts: NDArray[np.int64]) -> None: ...
def cut_shares(t: NDArray[np.float64], degree: int) -> None: ...
def squares(rows: Rows, first: int, last: int, out: NDArray[np.float64]) -> None: ...
def count_columns(rows: Rows, step: int, by: _Real, stored: NDArray[np.int32], equal: NDArray[np.int32]) -> None: ...
def take_columns(rows: Rows, step: int, line: NDArray[np.int32], values: _Real) -> None: ...
def nearest(
    rows: Rows,
    first: int,
    last: int,
    use: NDArray[np.int32],
    centres: NDArray[np.float64],
    half: NDArray[np.float64],
    n_cells: int,
    cell: NDArray[np.int32],
) -> None: ...
def shift_rows(
    rows: Rows,
    first: int,
    last: int,
    by: _Real,
    place: NDArray[np.int32],
    moved: NDArray[np.int32],
    moved_ptr: NDArray[np.int64],
    cell: NDArray[np.int32] | None,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32] | None,
    data: _Real | None,
    beyond: NDArray[np.float64] | None,
    append: bool = False,
) -> None: ...
def losses() -> dict[str, Any]: ...
def radius2(name: str, n_outputs: int) -> float | None: ...

class Targets:
    y: NDArray[np.int8] | None
    target: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    favour: NDArray[np.float64] | None
    n_rows: int
    n_outputs: int
    of_labels: bool
    joint: bool
    def __init__(
        self,
        loss: str,
        y: NDArray[np.int8] | None,
        target: NDArray[np.float64] | None = None,
        weight: NDArray[np.float64] | None = None,
        favour: NDArray[np.float64] | None = None,
        epsilon: float = 0,
    ) -> None: ...
    def margins(self, f: _Real, first: int, margin: NDArray[np.float64]) -> None: ...
    def add_terms(
        self,
        margin: NDArray[np.float64],
        alpha: NDArray[np.float64] | None,
        which: NDArray[np.int32] | None,
        first: int,
        last: int,
        live: NDArray[np.uint8] | None,
        sums: NDArray[np.float64],
        active: NDArray[np.uint8] | None,
        near: NDArray[np.float64] | None,
    ) -> None: ...
    def slopes(self, margin: NDArray[np.float64], alpha: NDArray[np.float64]) -> None: ...

class Training:
    rows: Rows
    margin: Map
    update: Map
    w: _Real
    targets: Targets
    def __init__(
        self,
        rows: Rows,
        margin: Map,
        update: Map,
        w: _Real,
        targets: Targets,
        block: int,
        scratch: _Scratch,
        shares: NDArray[np.int32],
        parts: NDArray[np.int32] | None = None,
    ) -> None: ...
    @property
    def block(self) -> int: ...

def training_scratch_bytes(
    rows: Rows, block: int, n_outputs: int = 1, width: int = 1, n_parts: int = 1, n_threads: int = 1
) -> int: ...

class Dual:
    training: Training
    alpha: NDArray[np.float64]
    margin: NDArray[np.float64]
    norm2: NDArray[np.float64]
    live: NDArray[np.uint8] | None
    changed: int
    def __init__(
        self,
        training: Training,
        C: float,
        alpha: NDArray[np.float64],
        margin: NDArray[np.float64],
        norm2: NDArray[np.float64],
        live: NDArray[np.uint8] | None,
        sweeps: int,
    ) -> None: ...
    def run(self, first: int, last: int, me: int = 0) -> None: ...

class Pegasos:
    training: Training
    alpha: NDArray[np.float64]
    scale: NDArray[np.float64]
    norm2: NDArray[np.float64]
    radius: NDArray[np.float64] | None
    average: _Real | None
    shift: NDArray[np.float64]
    n_averaged: int
    def __init__(
        self,
        training: Training,
        lambda_: float,
        share: float,
        radius: NDArray[np.float64] | None,
        alpha: NDArray[np.float64],
        scale: NDArray[np.float64],
        norm2: NDArray[np.float64],
        t: int = 0,
    ) -> None: ...
    def begin_average(self, average: _Real | None, shift: NDArray[np.float64]) -> None: ...
    def run(self, first: int, last: int, me: int = 0) -> None: ...

class Adagrad:
    training: Training
    squares: _Real
    rate: _Real | None
    def __init__(self, training: Training, squares: _Real, eta: float, rate: _Real | None = None) -> None: ...
    def run(self, first: int, last: int, me: int = 0) -> None: ...
    def shrink(self, factor: float, first: int, last: int) -> None: ...

def own_slots(
    map: Map,
    own: NDArray[np.int32],
    own_ranks: NDArray[np.int64],
    first: int,
    last: int,
    slots: NDArray[np.int64],
) -> None: ...
def shuffle(rows: NDArray[np.int32], draws: NDArray[np.uint32]) -> None: ...
def active_rows(rows: NDArray[np.int32] | None, active: NDArray[np.uint8], kept: NDArray[np.int32]) -> int: ...
def sort_rows(rows: Rows, first: int, last: int, order: NDArray[np.int32], scratch: NDArray[np.uint64]) -> None: ...
def check_structure(
    indptr: _Index, indices: _Index, n_minor: int, n_stored: int, first: int = 0, last: int = -1
) -> tuple[str | None, bool]: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
