class Svmlight:
    n_rows: int
    first_index: int
    max_index: int
    full: bool
    def __init__(
        self,
        itemsize: int,
        first_index: int,
        n_columns: int,
        multilabel: bool,
        row_cost: int,
        entry_cost: int,
        enough: int,
    ) -> None: ...
    def clear(self) -> None: ...
    def feed(self, text: bytes, ahead: float = 1) -> int: ...
    def read(self) -> tuple[str | None, int]: ...
    def take(self) -> list[bytearray]: ...
