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
    n_rows: int
    n_columns: int
    itemsize: int
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
        bare: bool,
    ) -> None: ...

def scratch_bytes(rows: Rows) -> int: ...
def dot(rows: Rows, map: Map, first: int, last: int, table: _Real, out: _Real, scratch: _Scratch) -> None: ...
def add(rows: Rows, map: Map, first: int, last: int, table: _Real, t: _Real, scratch: _Scratch) -> None: ...
def expand(rows: Rows, map: Map, first: int, last: int, slots: _Index, values: _Real, scratch: _Scratch) -> None: ...
def weigh_scratch_bytes(map: Map, itemsize: int) -> int: ...
def weigh(map: Map, first: int, last: int, table: _Real, scratch: _Scratch) -> None: ...
def check_structure(indptr: _Index, indices: _Index, n_minor: int, n_stored: int) -> tuple[str | None, bool]: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
