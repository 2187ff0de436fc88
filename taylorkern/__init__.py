"""Gaussian-kernel machines on explicit Taylor features that are walked, never stored."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._model.approximation import ApproximationWarning
    from ._model.files import load
    from ._plan.plan import plan
    from .features import TaylorFeatures
    from .kernel import taylor_kernel
    from .operator import TaylorOperator
    from .svc import TaylorSVC
    from .svr import TaylorSVR

__all__ = [
    "ApproximationWarning",
    "TaylorFeatures",
    "TaylorOperator",
    "TaylorSVC",
    "TaylorSVR",
    "load",
    "plan",
    "taylor_kernel",
]

# Imported when they are first asked for: the command line needs few of them, and is to start quickly.
_WHERE = {
    "ApproximationWarning": "_model.approximation",
    "TaylorFeatures": "features",
    "TaylorOperator": "operator",
    "TaylorSVC": "svc",
    "TaylorSVR": "svr",
    "load": "_model.files",
    "plan": "_plan.plan",
    "taylor_kernel": "kernel",
}
_MODULES = {"certificate", "features", "kernel", "operator", "stream", "svc", "svr"}


def __getattr__(name):
    if name in _WHERE:
        value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("taylorkern")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_WHERE, *_MODULES, "__version__"})
