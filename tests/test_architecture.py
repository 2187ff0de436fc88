"""docs/architecture.md, as far as a machine can tell: imports go down the rooms, and underscore names stay home."""

import ast
from pathlib import Path

import pytest

import taylorkern

ROOT = Path(taylorkern.__file__).parent
# Each may import from those behind it. What is imported inside a function is there for its time, or for its size.
ROOMS = ("_cli", "_plan", "public", "_stream", "_model", "_train", "_place", "_data")
COMPILED = ("_core", "_svmlight")


def imports(path):
    """(room, names, whether at the top of the file) of all relative imports."""
    room = path.parent.name if path.parent != ROOT else "_cli" if path.name == "cli.py" else "public"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        names = [alias.name for alias in node.names]
        first = (node.module or "").split(".")[0]
        if node.level == 1 and path.parent != ROOT:
            target = room
        else:
            target = first if first in ROOMS else "_cli" if first == "cli" else "public"
        if not first and set(names) <= set(COMPILED):
            continue
        yield room, target, names, id(node) in top


FILES = sorted(path for path in ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down_and_underscores_stay_home(path):
    for room, target, names, at_top in imports(path):
        if at_top:
            assert ROOMS.index(room) <= ROOMS.index(target), f"{room} imports {names} from {target}"
        if room != target:
            assert not [name for name in names if name.startswith("_") and name != "__version__"], names
