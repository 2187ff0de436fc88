"""Gaussian-kernel machines on explicit Taylor features that are walked, never stored."""

from importlib.metadata import version

from .features import TaylorFeatures
from .kernel import taylor_kernel
from .model_file import load
from .operator import TaylorOperator
from .svm import TaylorSVC, TaylorSVR

__all__ = ["TaylorFeatures", "TaylorOperator", "TaylorSVC", "TaylorSVR", "load", "taylor_kernel"]
__version__ = version("taylorkern")
