"""Gaussian-kernel machines on explicit Taylor features that are walked, never stored."""

from importlib.metadata import version

from .features import TaylorFeatures
from .kernel import taylor_kernel
from .operator import TaylorOperator
from .svm import TaylorSVC, TaylorSVR

__all__ = ["TaylorFeatures", "TaylorOperator", "TaylorSVC", "TaylorSVR", "taylor_kernel"]
__version__ = version("taylorkern")
