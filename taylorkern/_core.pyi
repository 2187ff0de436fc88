import numpy as np
from numpy.typing import NDArray

_Real = NDArray[np.float32] | NDArray[np.float64]
_Index = NDArray[np.int32] | NDArray[np.int64]
_Scratch = NDArray[np.uint8]

MAX_DENSE_COLUMNS: int

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
    def __init__(
        self,
        data: _Real,
        indices: NDArray[np.int32] | None,
        indptr: NDArray[np.int64] | None,
        n_columns: int,
        max_nonzeros: int,
    ) -> None: ...
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
        ranks: NDArray[np.int64],
        constant: NDArray[np.float64],
        repeat: NDArray[np.float64],
        series: NDArray[np.float64],
        bare: bool,
    ) -> None: ...

def scratch_bytes(rows: Rows) -> int: ...
def dot(rows: Rows, map: Map, first: int, last: int, table: _Real, out: _Real, scratch: _Scratch) -> None: ...
def add(rows: Rows, map: Map, first: int, last: int, table: _Real, t: _Real, scratch: _Scratch) -> None: ...
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
def shift_rows(
    rows: Rows,
    first: int,
    last: int,
    by: _Real,
    moved: NDArray[np.int32],
    place: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32] | None,
    data: _Real | None,
) -> None: ...

LOSSES: dict[str, int]

class Training:
    rows: Rows
    margin: Map
    update: Map
    w: _Real
    y: NDArray[np.int8]
    weight: NDArray[np.float64] | None
    def __init__(
        self,
        rows: Rows,
        margin: Map,
        update: Map,
        w: _Real,
        loss: str,
        y: NDArray[np.int8],
        weight: NDArray[np.float64] | None,
        block: int,
        scratch: _Scratch,
    ) -> None: ...

def training_scratch_bytes(rows: Rows, block: int) -> int: ...

class Dual:
    training: Training
    alpha: NDArray[np.float64]
    margin: NDArray[np.float64]
    norm2: float
    changed: int
    def __init__(
        self, training: Training, C: float, alpha: NDArray[np.float64], margin: NDArray[np.float64], sweeps: int
    ) -> None: ...
    def run(self, first: int, last: int) -> None: ...

class Pegasos:
    training: Training
    alpha: NDArray[np.float64]
    average: _Real | None
    scale: float
    averaging: tuple[float, float]
    def __init__(
        self,
        training: Training,
        lambda_: float,
        share: float,
        radius: float,
        alpha: NDArray[np.float64],
        t: int = 0,
        norm2: float = 0,
    ) -> None: ...
    def begin_average(self, average: _Real) -> None: ...
    def run(self, first: int, last: int) -> None: ...

class Adagrad:
    training: Training
    squares: _Real
    def __init__(self, training: Training, squares: _Real, eta: float) -> None: ...
    def run(self, first: int, last: int) -> None: ...
    def shrink(self, factor: float, first: int, last: int) -> None: ...

def own_slots(
    map: Map,
    own: NDArray[np.int32],
    own_ranks: NDArray[np.int64],
    first: int,
    last: int,
    slots: NDArray[np.int64],
) -> None: ...
def check_structure(indptr: _Index, indices: _Index, n_minor: int, n_stored: int) -> tuple[str | None, bool]: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
