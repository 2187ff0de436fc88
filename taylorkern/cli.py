"""The command line: `taylorkern demo`."""

import argparse
import sys
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel

from . import TaylorFeatures, __version__, taylor_kernel
from .features import monomial_name
from .kernel import components_within, residual

DEMO_ROWS = 300
DEMO_DEGREES = range(1, 5)
DEMO_SEEDS = range(3)
DEMO_NAMES = [f"x{j}" for j in range(64)]


def demo(out=None):
    """Print how well Taylor features approximate the Gaussian kernel, next to random Fourier features."""
    out = out or sys.stdout
    X = load_digits().data[:DEMO_ROWS]
    X = X[:, X.std(axis=0) > 0]
    X = X - X.mean(axis=0)  # the Gaussian kernel does not change, the expansion gets better
    gamma = 1 / (X.shape[1] * X.var())
    exact = rbf_kernel(X, gamma=gamma)
    print(f"{X.shape[0]} images of handwritten digits, {X.shape[1]} columns, gamma = {gamma:.3g}", file=out)
    print("mean |K - K~| against the exact Gaussian kernel, at the same number of operations a row:\n", file=out)
    header = f"{'degree':>6} {'features':>9} {'operations':>10} {'Taylor':>9} {'residual':>9}"
    print(f"{header} | {'Fourier features':>16} {'Fourier':>9}", file=out)
    for degree in DEMO_DEGREES:
        cost = TaylorFeatures(degree=degree).estimate_cost(X)
        operations = cost.operations / len(X)
        taylor = np.abs(taylor_kernel(X, degree=degree, gamma=gamma) - exact).mean()
        lost = residual(X, degree=degree, gamma=gamma).mean()
        n_components = max(1, components_within(X, operations))
        fourier = np.mean([_fourier_error(X, exact, gamma, n_components, seed) for seed in DEMO_SEEDS])
        row = f"{degree:>6} {cost.n_slots:>9} {operations:>10.0f} {taylor:>9.6f} {lost:>9.6f}"
        print(f"{row} | {n_components:>16} {fourier:>9.6f}", file=out)
    features = TaylorFeatures(degree=3, gamma=gamma).fit(X)
    started = perf_counter()
    Phi = features.transform(X)
    seconds = perf_counter() - started
    names = ", ".join(monomial_name(features.powers_of(slot), DEMO_NAMES) for slot in Phi[0].indices[1:2000:500])
    print(
        "\nresidual: the mean of 1 - K~(x, x). It is known without the exact kernel, and by Cauchy and Schwarz it is"
        "\nnever less than the error of Taylor features: it tells beforehand whether a degree is high enough.\n"
        f"\ndegree 3: {Phi.nnz} features of {Phi.shape[0]} rows made in {seconds:.2f} s; some of them: {names}",
        file=out,
    )


def _fourier_error(X, exact, gamma, n_components, seed):
    Z = RBFSampler(gamma=gamma, n_components=n_components, random_state=seed).fit_transform(X)
    return np.abs(Z @ Z.T - exact).mean()


def main(arguments=None):
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="taylorkern", description=sys.modules["taylorkern"].__doc__)
    parser.add_argument("--version", action="version", version=f"taylorkern {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("demo", help="the Gaussian kernel approximated on data that scikit-learn ships")
    parser.parse_args(arguments)
    demo()
    return 0
