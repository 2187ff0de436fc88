"""What `taylorkern demo` shows: the kernel approximated, then an SVM trained, on data that needs no download."""

import logging
import os
import tempfile
import textwrap
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from .._model.names import MonomialTable, shifted_name
from ..features import TaylorFeatures, monomial_name
from ..kernel import components_within, residual, taylor_kernel, taylor_operations
from ..svc import TaylorSVC

WIDTH = 110  # of a paragraph
DIGITS = 300
DEGREES = range(1, 5)
SEEDS = range(3)

# The garden: four numbers from 0 to 1, and six columns of 0 and 1 with these shares of ones.
NUMBERS = ["sun", "water", "warmth", "acid"]
FLAGS = {"drained": 0.7, "sandy": 0.3, "mulch": 0.3, "fern": 0.2, "heather": 0.2, "potted": 0.1}
COLUMNS = [*NUMBERS, *FLAGS]
WRONG_LABELS = 0.05
N_TRAIN, N_TEST = 8000, 2000
DEGREE, C, GAMMA, TOL = 5, 10.0, 0.1, 1e-3

PICTURE_ENDINGS = (".png", ".pdf", ".svg")
INSTALL_MATPLOTLIB = 'A picture needs matplotlib: pip install "taylorkern[plot]"'


class Result(NamedTuple):
    """What one model achieved, and the time it took."""

    name: str
    objective: float  # lambda/2 |w|^2 + mean hinge loss of the training rows
    test_error: float
    train_seconds: float
    predict_seconds: float


class Outcome(NamedTuple):
    """What the demo found."""

    results: list[Result]
    taylor: TaylorSVC
    picture: Path | None


def demo(picture=None, *, n_train=N_TRAIN, out=None):
    """Show the approximation of the Gaussian kernel, three models that use it, and a picture of them.

    Parameters
    ----------
    picture : path-like, default=None
        Where to draw, see `picture_problem`. None: to a new file in the system's temporary folder, if matplotlib is
        there.
    n_train : int, default=8000
        The number of training rows.
    out : file-like, default=None
        Where to print; None is the standard output.

    Returns
    -------
    outcome : Outcome
    """
    show_approximation(out)
    results, taylor = show_training(n_train, out)
    if find_spec("matplotlib") is None:
        print(INSTALL_MATPLOTLIB, file=out)
        return Outcome(results, taylor, None)
    if picture is None:
        handle, picture = tempfile.mkstemp(prefix="taylorkern-demo-", suffix=".png")
        os.close(handle)
    draw(results, taylor, picture)
    print(f"The picture of it is in {picture}", file=out)
    return Outcome(results, taylor, Path(picture))


# The kernel.


def show_approximation(out):
    """Print how well Taylor features approximate the Gaussian kernel, next to random Fourier features."""
    X = load_digits().data[:DIGITS]
    X = X[:, X.std(axis=0) > 0]
    X = X - X.mean(axis=0)  # the Gaussian kernel does not change, the expansion gets better
    gamma = 1 / (X.shape[1] * X.var())
    exact = rbf_kernel(X, gamma=gamma)
    print("1. The Gaussian kernel, approximated\n", file=out)
    print(f"{X.shape[0]} images of handwritten digits, {X.shape[1]} columns, gamma = {gamma:.3g}", file=out)
    print("mean |K - K~| against the exact Gaussian kernel, at the same number of operations a row:\n", file=out)
    header = f"{'degree':>6} {'features':>9} {'operations':>10} {'Taylor':>9} {'residual':>9}"
    print(f"{header} | {'Fourier features':>16} {'Fourier':>9}", file=out)
    for degree in DEGREES:
        cost = TaylorFeatures(degree=degree).estimate_cost(X)
        operations = cost.operations / len(X)
        taylor = np.abs(taylor_kernel(X, degree=degree, gamma=gamma) - exact).mean()
        lost = residual(X, degree=degree, gamma=gamma).mean()
        n_components = max(1, components_within(X, operations))
        fourier = np.mean([_fourier_error(X, exact, gamma, n_components, seed) for seed in SEEDS])
        row = f"{degree:>6} {cost.n_slots:>9} {operations:>10.0f} {taylor:>9.6f} {lost:>9.6f}"
        print(f"{row} | {n_components:>16} {fourier:>9.6f}", file=out)
    print(
        "\nresidual: the mean of 1 - K~(x, x). It is known without the exact kernel, and by Cauchy and Schwarz it is"
        "\nnever less than the error of Taylor features: it tells beforehand whether a degree is high enough.",
        file=out,
    )


def _fourier_error(X, exact, gamma, n_components, seed):
    Z = RBFSampler(gamma=gamma, n_components=n_components, random_state=seed).fit_transform(X)
    return np.abs(Z @ Z.T - exact).mean()


# The training.


def garden(n_rows, random):
    """Made-up plants, and whether they thrive: (X, y), with y of -1 and 1."""
    numbers = random.uniform(size=(n_rows, len(NUMBERS)))
    flags = random.uniform(size=(n_rows, len(FLAGS))) < list(FLAGS.values())
    sun, water, warmth, acid = (numbers - 0.5).T
    drained, sandy, _mulch, fern, heather, _potted = flags.T
    # Sun with water or neither of them; a bog drowns, heather wants acid soil, ferns want shade, warm sand dries out.
    score = 12 * sun * water - 6 * ~drained * water + 6 * heather * acid - 4 * fern * sun - 3 * sandy * warmth
    thrives = score + 0.2 * random.logistic(size=n_rows) > 0
    thrives ^= random.uniform(size=n_rows) < WRONG_LABELS
    return np.hstack([numbers, flags]), np.where(thrives, 1, -1)


def show_training(n_train, out):
    """Train the three models and print what became of them; returns the results and the TaylorSVC."""
    X, y = garden(n_train + N_TEST, np.random.default_rng(0))
    split = (X[:n_train], y[:n_train], X[n_train:], y[n_train:])
    linear = LinearSVC(C=C, dual=False).fit(*split[:2])
    print("\n\n2. A Gaussian SVM, trained\n", file=out)
    _say(
        out,
        f"{n_train} made-up plants with {len(COLUMNS)} columns: {', '.join(COLUMNS)}. Does a plant thrive? It depends "
        f"on how columns act together (much sun needs much water), and {WRONG_LABELS:.0%} of the labels are wrong. "
        "Columns by themselves tell little: a linear SVM errs on "
        f"{1 - linear.score(*split[2:]):.1%} of {N_TEST} new plants.",
    )
    _say(
        out,
        f"Now with the Gaussian kernel, C = {C:g}, gamma = {GAMMA:g}. Fitting scikit-learn's exact SVC takes some "
        "seconds ...",
    )
    exact, _ = _fit("SVC", SVC(C=C, gamma=GAMMA, tol=TOL), split, _svc_objective)
    model = TaylorSVC(degree=DEGREE, C=C, gamma=GAMMA, tol=TOL, random_state=0)
    taylor, model = _fit("TaylorSVC", model, split, lambda model, X, y: model.certificate_.primal)
    shifted = X[:n_train] - model.shift_
    operations = taylor_operations(shifted, DEGREE)
    sampler = RBFSampler(gamma=GAMMA, n_components=components_within(shifted, operations), random_state=0)
    machine = LinearSVC(C=C, loss="hinge", tol=TOL, max_iter=10**6, random_state=0)
    fourier, _ = _fit("RBFSampler + LinearSVC", make_pipeline(sampler, machine), split, _pipeline_objective)
    results = [exact, taylor, fourier]

    print(f"{'model':<22} {'objective':>10} {'test error':>11} {'training s':>11} {'prediction s':>13}", file=out)
    for name, objective, error, training, prediction in results:
        print(f"{name:<22} {objective:>10.4f} {error:>11.2%} {training:>11.3f} {prediction:>13.4f}", file=out)
    print(file=out)
    _say(
        out,
        "The objective is what training makes small: lambda/2 |w|^2 + mean hinge loss, with lambda = 1 / (C n). Test "
        f"error and prediction are those of {N_TEST} new plants. TaylorSVC has {model.n_slots_} monomials of degree "
        f"{DEGREE} at most, {operations:.0f} of them in a typical row; {sampler.n_components} random Fourier features "
        "take about as many operations. With more of them RBFSampler would come closer to SVC, and take longer.",
    )
    print(f"{model.certificate_}\n", file=out)
    _say(out, _reading(model.certificate_))
    print(f"{_strongest(model)}\n", file=out)
    _say(
        out,
        "These are TaylorSVC's three strongest interactions, and also the three that weigh most in the rule behind the "
        "labels. Columns are shifted, which the Gaussian kernel does not notice: by the value that most rows have, or "
        "else by their mean.",
    )
    return results, model


def _say(out, text):
    """Print a paragraph; at once, for what follows may take a while."""
    print(textwrap.fill(text, WIDTH, break_on_hyphens=False), end="\n\n", file=out, flush=True)


def _fit(name, model, split, objective):
    """(Result, fitted model); objective(model, X, y) is that of the training rows."""
    X, y, X_test, y_test = split
    started = perf_counter()
    model.fit(X, y)
    fitted = perf_counter()
    predicted = model.predict(X_test)
    ended = perf_counter()
    error = float(np.mean(predicted != y_test))
    return Result(name, objective(model, X, y), error, fitted - started, ended - fitted), model


def _objective(norm2, margins):
    return float(norm2 / (2 * C * len(margins)) + np.maximum(0, 1 - margins).mean())


def _svc_objective(svc, X, y):
    """From the support vectors: |w|^2 is their sum of dual_coef_ (f(x) - bias), and other rows have no loss."""
    f = svc.decision_function(X[svc.support_])
    margins = np.ones(len(y))
    margins[svc.support_] = y[svc.support_] * f
    return _objective(svc.dual_coef_[0] @ (f - svc.intercept_[0]), margins)


def _pipeline_objective(pipeline, X, y):
    w = pipeline[-1].coef_[0]
    return _objective(w @ w, y * pipeline.decision_function(X))


def _reading(certificate):
    """The certificate in words."""
    proven, sampled = (1 - low / high for low, high in (certificate.exact_interval, certificate.sampled_interval))
    return (
        "This is TaylorSVC's certificate, which took no training with the exact kernel. It says: no SVM with the exact "
        f"kernel, the same C and gamma and no bias has an objective more than {proven:.1%} below TaylorSVC's. That is "
        f"proven; by an estimate from a sample of rows it is {sampled:.2%}. (SVC has a bias, which costs it nothing "
        "and can take it lower still.)"
    )


def _strongest(model):
    """The three strongest interactions, by the columns' names."""
    # A data frame would bring its names along, but pandas need not be there.
    names = [shifted_name(name, by) for name, by in zip(COLUMNS, model.shift_, strict=True)]
    return MonomialTable(m._replace(name=monomial_name(m.powers, names, " * ")) for m in model.top_monomials(3))


# The picture.


def picture_problem(file):
    """Why a picture cannot be drawn to this file, as a sentence; None when it can."""
    if find_spec("matplotlib") is None:
        return INSTALL_MATPLOTLIB
    file = Path(file)
    if file.suffix.lower() not in PICTURE_ENDINGS:
        return f"the picture's name must end with {', '.join(PICTURE_ENDINGS)}; got {str(file)!r}"
    if not os.access(file.parent, os.W_OK):
        return f"there is no folder {str(file.parent)!r} to write the picture to"
    return None


def draw(results, taylor, file):
    """Draw test error against training time, and how TaylorSVC's objective went, to a file."""
    with quiet_matplotlib():
        # It is optional: imported here, and in a way that mypy does not follow. A bare Figure draws by Agg, without a
        # display, and leaves pyplot's state alone.
        figure = import_module("matplotlib.figure").Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_results(left, results)
        _draw_training(right, taylor, results[0])
        figure.savefig(file, dpi=120)


def _draw_results(axes, results):
    for result, color in zip(results, ["black", "C0", "C1"], strict=True):
        point = (result.train_seconds, 100 * result.test_error)
        axes.plot(*point, "o", markersize=9, color=color)
        axes.annotate(result.name, point, xytext=(0, 9), textcoords="offset points", ha="center")
    seconds = [result.train_seconds for result in results]
    axes.set(
        title="Lower and further left is better",
        xlabel="training time, s",
        ylabel=f"test error, % of {N_TEST} rows",
        xscale="log",
        xlim=(min(seconds) / 4, 4 * max(seconds)),  # room for the names
        ylim=(0, 130 * max(result.test_error for result in results)),
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)


def _draw_training(axes, taylor, svc):
    history = taylor.history_
    for name, color in [("primal", "C0"), ("dual", "C2")]:
        known = np.isfinite(history[name])
        seconds, values = history["seconds"][known], history[name][known]
        axes.plot(seconds, values, "o-", color=color, markersize=4, label=f"TaylorSVC, {name}")
    label = f"SVC, after {svc.train_seconds:.2g} s"
    axes.axhline(svc.objective, color="black", linestyle="--", linewidth=1, label=label)
    axes.set(title="TaylorSVC stops when primal and dual meet", xlabel="training time, s", ylabel="objective")
    axes.grid(alpha=0.3)
    axes.legend()


@contextmanager
def quiet_matplotlib():
    """Without its notes on a font cache that it builds when first used."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
