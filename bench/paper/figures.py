"""The figures, in the paper's arrangement: small PNG files."""

from io import BytesIO
from math import sqrt

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter
from PIL import Image  # comes with matplotlib

from .claims import curve, curves_of, exact_of, pick, sweep
from .sets import NAMES, TABLE1

plt.rcParams |= {"font.size": 8, "lines.markersize": 4, "lines.linewidth": 1}

TAYLOR, FOURIER, EXACT = "tab:blue", "tab:red", "black"
UNIT = {"tab:blue": "red", "tab:purple": "magenta", "tab:orange": "saddlebrown", "tab:cyan": "black"}  # beside each
PANELS = (("cost", "primal"), ("cost", "error"), ("seconds", "primal"), ("seconds", "error"))
LABELS = {"cost": "operations a row", "seconds": "seconds of training (CPU)", "features": "number of features"}
OBJECTIVE, ERROR, KERNEL = "primal objective", "test error, %", "mean |K - K~|"


def figure1(records, path, names, narrow=False):
    """Rows: objective and test error against cost, then both against measured time."""
    figure, panels = plt.subplots(4, len(names), figsize=(3 * len(names), 10.5))
    for column, name in enumerate(names):
        panels[0, column].set_title(NAMES[name])
        for row, (x, y) in enumerate(
            (("cost", "primal"), ("cost", "error"), ("seconds", "primal"), ("seconds", "error"))
        ):
            both(panels[row, column], records, name, x, y, narrow)
    panels[0, 0].legend(fontsize=7)
    save(figure, path)


def both(panel, records, name, x, y, narrow=False):
    """Taylor and Fourier curves, with lines for the exact kernel and the linear SVM."""
    taylor, fourier, exact = curves_of(records, name, narrow)
    draw(panel, taylor, x, y, "o-", TAYLOR, "Taylor")
    draw(panel, fourier, x, y, "s-", FOURIER, "Fourier")
    panel.axhline(exact[y], color=EXACT, label="exact kernel")
    if x == "seconds":
        panel.plot([exact["seconds"]], [exact[y]], "*", color=EXACT, markersize=8)
    if y == "error":
        for linear in pick(records, work="linear", set=name, rows=exact["rows"])[:1]:
            panel.axhline(linear["error"], color=EXACT, linestyle="--", label="linear")
    name_axes(panel, x, y)


def figure2(records, path):
    """Cov1: the paper's panels, the test error against the number of features, and both against measured time."""
    figure, panels = plt.subplots(2, 5, figsize=(15, 5.5))
    for column, x in ((0, "cost"), (1, "features"), (4, "seconds")):
        both(panels[0, column], records, "cov1", x, "primal")
        both(panels[1, column], records, "cov1", x, "error")
    for row, x in enumerate(("cost", "features")):
        kernel_errors(panels[row, 2], records, "cov1", x)
    by_sigma(panels[1, 3], records)
    panels[0, 3].axis("off")
    panels[0, 3].legend(*panels[1, 0].get_legend_handles_labels(), loc="center")
    save(figure, path)


def by_sigma(panel, records):
    """The test error of three kernels of equal cost, and of the nearest neighbour."""
    for work, style, colour in (("taylor", "o-", TAYLOR), ("fourier", "s-", FOURIER), ("exact", "-", EXACT)):
        points = sweep(records, work)
        panel.plot([sqrt(p["sigma2"]) for p in points], [p["error"] for p in points], style, color=colour)
    panel.axhline(pick(records, work="neighbour")[0]["error"], color=EXACT, linestyle="-.", label="1-NN")
    panel.set(xscale="log", xlabel="sigma", ylabel=ERROR)
    panel.legend(fontsize=7)


def kernel_errors(panel, records, name, x):
    """Mean errors of the kernel over pairs."""
    for key, style, colour, label in (("degree", "o-", TAYLOR, "Taylor"), ("n_components", "s-", FOURIER, "Fourier")):
        points = [record for record in pick(records, work="pairs", set=name) if key in record]
        panel.plot(
            [point[x] for point in points], [point["mean"] for point in points], style, color=colour, label=label
        )
    panel.set(xscale="log", yscale="log", xlabel=LABELS[x], ylabel=KERNEL)


def theory(records, path):
    """For each set: what the cut costs in the objective, and in the kernel; bounds and measurements."""
    figure, panels = plt.subplots(2, 4, figsize=(13, 6.5))
    for column, name in enumerate(TABLE1):
        above, below = panels[:, column]
        above.set_title(NAMES[name])
        bounds = sorted(pick(records, work="bounds", set=name), key=lambda record: record["cost"])
        rows = bounds[0]["rows"]
        models = curve(records, name, "taylor", rows=rows, shift=None)
        primal = exact_of(records, name, rows)["primal"]
        lines(above, bounds, "theorem1", "^:", "tab:orange", "Theorem 1")
        for low, style, label in (("low", "v-", "certificate, proven"), ("sampled_low", "d-", "certificate, sampled")):
            widths = [model["primal"] - model[low] for model in models]
            above.plot([m["cost"] for m in models], widths, style, color="tab:green", label=label)
        rises = [max(model["primal"] - primal, 1e-5) for model in models]
        above.plot([model["cost"] for model in models], rises, "o-", color=TAYLOR, label="measured")
        lines(below, bounds, "taylor_radius", "^:", "tab:orange", "Taylor's bound, largest norm")
        lines(below, bounds, "taylor_mean", "v:", "tab:brown", "Taylor's bound, mean of pairs")
        lines(below, bounds, "cauchy_schwarz_mean", "d:", "tab:green", "Cauchy-Schwarz, mean of pairs")
        lines(below, bounds, "claim1", "x:", "tab:pink", "Claim 1, same cost, 95 %")
        kernel_errors(below, records, name, "cost")
        above.set(xscale="log", yscale="log", xlabel=LABELS["cost"])
    panels[0, 0].set_ylabel("p~* - p*")
    panels[0, 1].legend(fontsize=6)
    panels[1, 1].legend(fontsize=6)
    save(figure, path)


def lines(panel, records, key, style, colour, label):
    panel.plot([r["cost"] for r in records], [r[key] for r in records], style, color=colour, label=label)


def beyond(records, path):
    """Against cost and time: the paper's two curves, pale, and what the package adds; unit rows are dashed."""
    figure, panels = plt.subplots(4, 4, figsize=(13, 11))
    for column, name in enumerate(TABLE1):
        panels[0, column].set_title(NAMES[name])
        for row, (x, y) in enumerate(
            (("cost", "primal"), ("cost", "error"), ("seconds", "primal"), ("seconds", "error"))
        ):
            panel = panels[row, column]
            taylor, fourier, exact = curves_of(records, name)
            draw(panel, taylor, x, y, "o-", "lightsteelblue", "Taylor, as in the paper")
            draw(panel, fourier, x, y, "s-", "lightpink", "Fourier")
            panel.axhline(exact[y], color=EXACT, label="exact kernel")
            for added, style, colour, label in additions(records, name, y):
                draw(panel, [p for p in added if "normalize" not in p], x, y, style, colour, label)
                unit = [in_exact(p) for p in added if "normalize" in p]
                draw(panel, unit, x, y, style.replace("-", "--"), UNIT.get(colour), f"{label}, unit rows", hollow=True)
            name_axes(panel, x, y)
    entries = {}
    for panel in figure.axes:
        for line, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, line)
    # As wide as the page and above all panels: within them it would lie on the curves.
    figure.legend(entries.values(), entries, loc="lower center", bbox_to_anchor=(0.5, 1), ncol=5, fontsize=8)
    save(figure, path)


def in_exact(point):
    """Unit rows, with the objective that the same classifier has in the exact kernel's problem."""
    return point | {"primal": point["high"]}


def beyond_sigma(records, path):
    """Cov1: the test error against sigma, with unit rows beside the paper's."""
    figure, panel = plt.subplots(figsize=(4.5, 3))
    by_sigma(panel, records)
    points = sweep(records, "taylor", normalize=True)
    panel.plot([sqrt(p["sigma2"]) for p in points], [p["error"] for p in points], "o--", color="tab:green")
    labels = ("Taylor", "Fourier", "exact kernel", "1-NN", "Taylor, unit rows")
    panel.legend(panel.get_lines(), labels, fontsize=7)
    save(figure, path)


def additions(records, name, y):
    """The curves of what was added: (points, style, colour, label)."""
    mine = pick(records, work="taylor", set=name, shift="auto")
    plain = [r for r in mine if "n_cells" not in r and "n_axes" not in r]
    yield [r for r in plain if "solver" not in r], "o-", "tab:blue", "shift"
    rows = curves_of(records, name)[0][0]["rows"]
    yield [r for r in plain if "solver" in r and r["rows"] == rows], "v-", "tab:green", "shift, adagrad"
    yield [r for r in mine if "n_axes" in r], "D-", "tab:purple", "principal axes, degree 3"
    if y == "error":  # cells are another kernel: their objective is not comparable
        cells = [r for r in mine if "n_cells" in r]
        yield [r for r in cells if r["rows"] == rows], "P-", "tab:orange", "cells, degree 3"
        others = [r for r in mine if r["rows"] != rows]
        yield others, "*", "tab:cyan", "all rows, C = 128"


def draw(panel, points, x, y, style, colour, label, hollow=False):
    """A curve, when it has points."""
    points = sorted(points, key=lambda point: point[x])
    if points:
        inside = {"markerfacecolor": "white"} if hollow else {}
        inside |= {"markersize": 8} if style == "*" else {}
        panel.plot([p[x] for p in points], [p[y] for p in points], style, color=colour, label=label, **inside)


def name_axes(panel, x, y):
    panel.set(xscale="log", xlabel=LABELS[x], ylabel=OBJECTIVE if y == "primal" else ERROR)


def bars(groups, path, ylabel):
    """A table as bars: {group: {name: value}}."""
    figure, panels = plt.subplots(1, len(groups), figsize=(2.4 * len(groups), 2.6), squeeze=False)
    for panel, (group, values) in zip(panels[0], groups.items(), strict=True):
        panel.bar(range(len(values)), list(values.values()), color=["tab:grey", "tab:blue"] * len(values))
        panel.set_xticks(range(len(values)), list(values), rotation=60, ha="right", fontsize=6)
        panel.set_title(group)
    panels[0, 0].set_ylabel(ylabel)
    save(figure, path)


def save(figure, path):
    """With 128 colours, which is a third of the size."""
    for panel in figure.axes:
        if panel.get_xscale() == "log":
            panel.xaxis.set_minor_formatter(NullFormatter())  # labels between powers of ten would overlap
    figure.tight_layout()
    buffer = BytesIO()
    figure.savefig(buffer, dpi=80, bbox_inches="tight" if figure.legends else None)
    plt.close(figure)
    Image.open(buffer).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
