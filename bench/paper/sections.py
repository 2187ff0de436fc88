"""What the page shows of each part: tables, a figure, and the words of prose.py with their numbers."""

from fractions import Fraction
from math import comb, exp, inf, log, sqrt
from statistics import median

from . import figures, prose
from .claims import NEAR, best, curve, curves_of, exact_of, least_cost, margins, objectives, pick, sweep
from .parts import MNIST_EPOCHS, SWEPT
from .sets import NAMES, NARROW, SCALING, TABLE1, TABLE2


def table(head, lines):
    """In Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows) + "\n"


def image(name, text):
    return f"![{text}]({name}.png)\n"


def many(number):
    """With commas, three digits that count."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def rows_of(record):
    """How many training rows, in words."""
    return "all rows" if record["rows"] is None else f"{record['rows']:,} rows"


def table1(records, folder, sizes):
    lines, groups, narrow = [], {}, {}
    for name, paper in TABLE1.items():
        size = pick(records, work="sizes", set=name)[0]
        exact = exact_of(records, name, sizes.exact[name])
        narrow[name] = exact_of(records, name, sizes.exact[name], narrow=True)["error"]
        linear = next(r for r in pick(records, work="linear", set=name, rows=sizes.whole[name]) if "scaling" not in r)
        lines.append([
            NAMES[name], f"{size['train']:,} / {paper.train:,}", f"{size['test']:,} / {paper.test:,}",
            f"{size['columns']} / {paper.columns}", f"{size['nonzeros']:.1f} / {paper.nonzeros}",
            f"{paper.C:g}, {paper.sigma2:g}", f"{exact['error']:.2f} / {paper.gaussian}", f"{narrow[name]:.2f}",
            rows_of(exact), f"{paper.linear_C:g}", f"{linear['error']:.2f} / {paper.linear}",
        ])  # fmt: skip
        groups[NAMES[name]] = {
            "Gaussian, paper": paper.gaussian, "Gaussian, narrow": narrow[name],
            "linear, paper": paper.linear, "linear": linear["error"],
        }  # fmt: skip
    figures.bars(groups, folder / "table1.png", "test error, %")
    head = ["set", "train", "test", "columns", "nonzeros a row", "C, sigma^2", "Gaussian, % error", "narrow", "on"]
    rows = f"{sizes.exact['cov1'] or 522911:,}"
    errors = {name: exact_of(records, name, sizes.exact[name])["error"] for name in TABLE1}
    test = pick(records, work="sizes", set="timit")[0]["test"]
    early = pick(records, work="linear", set="mnist", max_iter=100)[0]["error"]
    return "\n".join([
        "Ours / the paper's:\n", table([*head, "linear: C", "linear, % error"], lines), image("table1", "test errors"),
        prose.SIZES.format(one_row=100 / test),
        "" if sizes.quick else prose.NARROW.format(
            adult=errors["adult"], mnist=errors["mnist"], adult_narrow=narrow["adult"], mnist_narrow=narrow["mnist"]
        ),
        prose.COV1_EXACT.format(rows=rows), prose.LINEAR.format(early=early),
        prose.SCALINGS.format(number=len(sizes.scalings), rows=rows),
        scalings(records, sizes),
    ])  # fmt: skip


def scalings(records, sizes):
    """The search for Cov1's preprocessing."""
    paper, lines, off, ends, taylor = TABLE1["cov1"], [], {}, {}, {}
    for scaling in sizes.scalings:
        linear = pick(records, work="linear", set="cov1", scaling=scaling)[0]["error"]
        line = [scaling, f"{linear:.2f}"]
        for reading, sigma2 in (("formula", paper.sigma2), ("narrow", paper.sigma2 / NARROW)):
            points = pick(records, work="exact", set="cov1", scaling=scaling, sigma2=sigma2)
            end = ends[reading, scaling] = followed([p["rows"] for p in points], [p["error"] for p in points])
            off[reading, scaling] = abs(end - paper.gaussian) + abs(linear - paper.linear)
            line += [", ".join(f"{p['error']:.1f}" for p in points), f"{end:.1f}"]
        models = [p["error"] for p in pick(records, work="taylor", set="cov1", scaling=scaling)]
        taylor |= {scaling: models} if models else {}
        lines.append([*line, ", ".join(f"{error:.1f}" for error in models)])
    formula, narrow = (min(sizes.scalings, key=lambda s: off[reading, s]) for reading in ("formula", "narrow"))
    counts = ", ".join(f"{n:,}" for n in sizes.searched)
    head = ["scaling", "linear, %", f"exact, formula: {counts} rows", "followed", "exact, narrow", "followed"]
    nearest = prose.NEAREST.format(
        formula=formula, formula_error=ends["formula", formula], narrow=narrow, narrow_error=ends["narrow", narrow],
    )  # fmt: skip
    by_taylor = min(taylor, key=lambda s: min(abs(error - TABLE2["cov1"].taylor) for error in taylor[s]))
    nearest += prose.BY_TAYLOR.format(rows=sizes.searched_taylor, nearest=by_taylor)
    rival = min(taylor, key=lambda s: off["narrow", s])
    if by_taylor == SCALING:
        nearest += prose.USED.format(rival=rival, rival_error=ends["narrow", rival], rival_taylor=taylor[rival][1])
    return table([*head, "Taylor: formula, narrow"], lines) + "\n" + nearest


def followed(rows, errors, to=522911):
    """The least squares line through (log rows, log error), at `to` rows."""
    x, y = [log(n) for n in rows], [log(error) for error in errors]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
    return exp(mean_y + slope * (log(to) - mean_x))


def points_table(records, name, narrow=False):
    """The curves of one set."""
    taylor, fourier, exact = curves_of(records, name, narrow)
    lines = [
        [f"{kind} {p[key]}", many(p["cost"]), f"{p['primal']:.4f}", f"{100 * (p['primal'] / exact['primal'] - 1):+.2f}",
         f"{p['error']:.2f}", f"{p['seconds']:.3g}"]
        for kind, key, points in (("Taylor, degree", "degree", taylor), ("Fourier,", "n_components", fourier))
        for p in points
    ]  # fmt: skip
    lines.append(["exact kernel", "", f"{exact['primal']:.4f}", "", f"{exact['error']:.2f}", f"{exact['seconds']:.3g}"])
    head = ["", "operations a row", "objective", "% above exact", "test error, %", "seconds"]
    return f"**{NAMES[name]}**{', narrow' if narrow else ''}, {rows_of(exact)}:\n\n" + table(head, lines)


def figure1(records, folder, sizes):
    names = ("adult", "mnist", "timit")
    figures.figure1(records, folder / "figure1.png", names)
    figures.figure1(records, folder / "figure1-narrow.png", sizes.narrow, narrow=True)
    reach = [cost for narrow in (False, True) for cost in reached(records, narrow)]
    digits, fourier, exact = curves_of(records, "mnist")
    last = digits[-1]
    mine, cheaper = objectives(digits, fourier, last["degree"])
    first, first_cheaper = objectives(digits, fourier, 2)
    nonzeros = fourier[0]["cost"] / fourier[0]["features"]
    again = [p for p in pick(records, work="fourier", set="mnist") if "seed" in p]
    taylor, others, stops = curves_of(records, "timit")
    above = all(ratio >= 1 for ratio, _ in margins(taylor, others))
    return "\n".join([
        image("figure1", "objective and test error against cost and time"), prose.FIGURE1,
        *(points_table(records, name) for name in names),
        prose.FIGURE1_NARROW, image("figure1-narrow", "the same in the narrow reading"),
        *(points_table(records, name, narrow=True) for name in sizes.narrow),
        prose.ADULT.format(
            near=100 * NEAR, ours=reach[0], theirs=reach[1], ours_narrow=reach[2], theirs_narrow=reach[3]
        ),
        prose.MNIST.format(
            rows=rows_of(exact).capitalize(), degree=last["degree"], features=many(last["features"]),
            first_cost=many(digits[0]["cost"]), last_cost=many(last["cost"]), cheaper=cheaper, mine=mine, first=first,
            first_cheaper=first_cheaper, n_components=again[0]["n_components"],
            seeds=" and ".join(f"{p['primal']:.4f}" for p in again),
            next_cost=many(comb(round(nonzeros) + last["degree"] + 1, last["degree"] + 1)),
        ),
        prose.TIMIT.format(
            order="The order is the paper's." if above else "The order is not the paper's at all degrees.",
            exact=stops["error"], linear=pick(records, work="linear", set="timit")[0]["error"],
        ),
        prose.TIME.format(features=many(last["features"]), exact=exact["seconds"]),
    ])  # fmt: skip


def reached(records, narrow):
    """The least cost of Taylor and of Fourier near Adult's exact objective, in words."""
    taylor, fourier, exact = curves_of(records, "adult", narrow)
    for points in (taylor, fourier):
        cost = least_cost(points, exact["primal"])
        yield many(cost) if cost < inf else f"more than {many(points[-1]['cost'])}"


def figure2(records, folder, sizes):
    figures.figure2(records, folder / "figure2.png")
    taylor, fourier, exact = curves_of(records, "cov1")
    swept = {work: sweep(records, work) for work in ("taylor", "fourier", "exact")}
    least = {work: min(points, key=lambda point: point["error"]) for work, points in swept.items()}
    sigmas = {f"{work}_sigma": sqrt(point["sigma2"]) for work, point in least.items()}
    turns = all(least[work]["sigma2"] > least["exact"]["sigma2"] for work in ("taylor", "fourier"))
    above = all(ratio >= 1 for ratio, _ in margins(taylor, fourier))
    kernel = [
        [f"{'Taylor, degree' if 'degree' in p else 'Fourier,'} {p.get('degree', p.get('n_components'))}",
         many(p["cost"]), many(p["features"]), f"{p['mean']:.4f}"] for p in pick(records, work="pairs", set="cov1")
    ]  # fmt: skip
    lines = [
        [f"{sqrt(points[0]['sigma2']):.3g}", *(f"{point['error']:.2f}" for point in points)]
        for points in zip(*swept.values(), strict=True)
    ]
    return "\n".join([
        image("figure2", "Cov1"), points_table(records, "cov1"),
        f"Mean |K - K~| over {sizes.pairs:,} random pairs of training rows:\n",
        table(["", "operations a row", "features", "mean error"], kernel),
        f"Test error in percent against sigma, C = 3, {sizes.sweep:,} rows; degree 4 and 152 Fourier features cost the "
        f"same. The nearest neighbour has {pick(records, work='neighbour')[0]['error']:.2f} %:\n",
        table(["sigma", "Taylor", "Fourier", "exact kernel"], lines),
        prose.COV1_ROWS.format(rows=rows_of(exact), test=sizes.test["cov1"], sweep=sizes.sweep),
        prose.COV1_OBJECTIVE.format(
            exact=exact["primal"], degree=taylor[-1]["degree"], taylor=taylor[-1]["primal"],
            n_components=fourier[-1]["n_components"], fourier=fourier[-1]["primal"],
            order="By cost the order is the paper's, by number of features the other way round." if above
            else "By cost the order is not the paper's at all degrees.",
        ),
        prose.BANDWIDTH.format(
            **sigmas, **{work: point["error"] for work, point in least.items()},
            turn=prose.TURNS if turns else "That is not as in the paper.",
        ),
    ])  # fmt: skip


def table2(records, folder, sizes):
    lines, groups = [], {}
    for name, paper in TABLE2.items():
        group = groups[NAMES[name]] = {}
        line = [NAMES[name], paper.degree]
        for kind, theirs in (("Gaussian", paper.gaussian), ("Taylor", paper.taylor), ("polynomial", paper.polynomial)):
            found = best(records, name, kind)
            sigma2 = f", {found['sigma2']:g}" if "sigma2" in found else ""
            line += [f"{found['C']:g}{sigma2}", f"{found['error']:.2f} / {theirs}"]
            group |= {f"{kind}, paper": theirs, f"{kind}": found["error"]}
        lines.append(line)
    figures.bars(groups, folder / "table2.png", "test error, %")
    head = ["set", "degree", "Gaussian: C, sigma^2", "% error", "Taylor: C, sigma^2", "% error", "polynomial: C"]
    grids, polynomial = (
        "; ".join(f"{NAMES[name]} {', '.join(str(Fraction(factor)) for factor in factors[name])}" for name in TABLE2)
        for factors in (sizes.grid, sizes.polynomial)
    )
    return "\n".join([
        "Test errors, ours / the paper's, at the best of each grid; sigma^2 by the formula:\n",
        table([*head, "% error"], lines), image("table2", "test errors of Gaussian, Taylor and polynomial kernel"),
        prose.GRIDS.format(grids=grids, polynomial=polynomial, **tried(records)), prose.SCALE,
        prose.TRAINING.format(mnist=MNIST_EPOCHS), "" if sizes.quick else polynomial_C(records),
        prose.COV1_GAUSSIAN.format(rows=rows_of(best(records, "cov1", "Gaussian"))),
    ])  # fmt: skip


def tried(records):
    """How many of our models there are to choose from."""
    adult, mnist = (pick(records, work="taylor", set=name) for name in ("adult", "mnist"))
    polynomial = sum("sigma2" not in model for model in adult)
    return {"tried": len(adult), "adult": len(adult) - polynomial, "adult_polynomial": polynomial, "mnist": len(mnist)}


def polynomial_C(records):
    """How far the best C is from the paper's, on Adult."""
    found, paper = best(records, "adult", "polynomial"), TABLE2["adult"].polynomial_C
    (there,) = (r for r in pick(records, work="taylor", set="adult", unit=True) if r["C"] == paper)
    return prose.POLYNOMIAL.format(C=found["C"], error=there["error"])


def timit(records, folder, sizes):
    exact, taylor = (pick(records, work="phonemes", kernel=kernel)[0] for kernel in ("exact", "taylor"))
    made = pick(records, work="synthetic")[0]
    accuracies = {
        "exact, paper": 69.8, "exact": 100 - exact["error"], "Taylor, paper": 69.6, "Taylor": 100 - taylor["error"],
    }  # fmt: skip
    ratios = {"paper": 313 / 53, "ours": exact["seconds"] / taylor["seconds"]}
    figures.bars({"accuracy, %": accuracies, "exact time / Taylor time": ratios}, folder / "timit.png", "")
    lines = [
        ["paper, 1.1 million frames", "313 h", "53 h", "69.8 %", "69.6 %"],
        [f"ours, sample, {exact['train']:,} frames", f"{exact['seconds']:.1f} s", f"{taylor['seconds']:.1f} s",
         f"{100 - exact['error']:.1f} %", f"{100 - taylor['error']:.1f} %"],
        [f"ours, made up, {made['rows']:,} rows", "", f"{made['seconds']:.0f} s", "", ""],
    ]  # fmt: skip
    note = "" if made["rows"] == 1_100_000 else " (of fewer rows)"
    return "\n".join([
        "39 phonemes by frame, degree 3:\n",
        table(["", "exact: training", "Taylor: training", "exact: accuracy", "Taylor: accuracy"], lines),
        image("timit", "accuracy and time"),
        prose.PHONEMES.format(points=exact["error"] - taylor["error"], epochs=taylor["epochs"]),
        prose.SYNTHETIC.format(
            rows=made["rows"], gap=100 * made["gap"], epochs=made["epochs"], seconds=made["seconds"],
            times=53 * 3600 / made["seconds"], note=note,
        ),
    ])  # fmt: skip


def theory(records, folder, sizes):
    figures.theory(records, folder / "theory.png")
    lines, kernel, facts = [], [], []
    for name in TABLE1:
        for bound in pick(records, work="bounds", set=name):
            degree, rows = bound["degree"], bound["rows"]
            (model,) = curve(records, name, "taylor", degree=degree, shift=None, rows=rows)
            shifted = curve(records, name, "taylor", degree=degree, shift="auto", rows=rows)
            rise = model["primal"] - exact_of(records, name, rows)["primal"]
            measured = pick(records, work="pairs", set=name, degree=degree)[0]
            lines.append([
                NAMES[name], degree, f"{bound['theorem1']:.3g}", f"{rise:.2g}",
                *(f"{m['primal'] - m['low']:.2g}, {m['primal'] - m['sampled_low']:.2g}" for m in [model, *shifted]),
                *([""] * (1 - len(shifted))),
            ])  # fmt: skip
            kernel.append([
                NAMES[name], degree, f"{bound['taylor_radius']:.2g}", f"{bound['taylor_mean']:.2g}",
                f"{bound['cauchy_schwarz_mean']:.2g}", f"{measured['mean']:.2g}, {measured['largest']:.2g}",
                bound["n_components"], f"{bound['claim1']:.2g}", f"{at_cost(records, name, bound):.2g}",
            ])  # fmt: skip
            facts.append(bound | {
                "shorter": model["primal"] - model["low"] < bound["theorem1"],
                "sampled": (model["primal"] - model["sampled_low"]) / max(rise, 1e-6),
                "loose": bound["taylor_mean"] / measured["mean"],
                "cauchy": bound["cauchy_schwarz_mean"] / measured["mean"],
            })  # fmt: skip
    below = {
        short: sum(fact[key] < 1 for fact in facts)
        for short, key in (
            ("theorem1", "theorem1"), ("claim1", "claim1"), ("radius", "taylor_radius"), ("mean", "taylor_mean"),
        )
    }  # fmt: skip
    middle = {key: median(fact[key] for fact in facts) for key in ("sampled", "loose", "cauchy")}
    told = below | middle | {"cases": len(facts), "shorter": sum(fact["shorter"] for fact in facts)}
    head = ["set", "degree", "Taylor's bound, largest norm", "mean over pairs", "Cauchy-Schwarz, mean over pairs"]
    return "\n".join([
        image("theory", "bounds and measurements"), prose.OBJECTIVES,
        table(["set", "degree", "Theorem 1", "measured", "certificate: proven, sampled", "after the shift"], lines),
        prose.KERNELS,
        table([*head, "measured: mean, largest", "Fourier features", "Claim 1, 95 %", "measured: mean"], kernel),
        prose.TIGHT.format(**told), prose.BUDGET.format(**told),
    ])  # fmt: skip


def at_cost(records, name, bound):
    """The measured error of random Fourier features at this cost: it falls with the square root of their number."""
    points = [p for p in pick(records, work="pairs", set=name, rows=bound["rows"]) if "n_components" in p]
    near = min(points, key=lambda p: abs(log(p["n_components"] / bound["n_components"])))
    return near["mean"] * sqrt(near["n_components"] / bound["n_components"])


def beyond(records, folder, sizes):
    figures.beyond(records, folder / "beyond.png")
    figures.beyond_sigma(records, folder / "beyond-sigma.png")
    lines = []
    for name, paper in TABLE1.items():
        for p in pick(records, work="taylor", set=name):
            if p["rows"] == sizes.sweep:
                continue
            p = figures.in_exact(p) if "normalize" in p else p
            primal = "" if "n_cells" in p or p["C"] != paper.C else f"{p['primal']:.4f}"
            setting = f"C = {p['C']:g}, sigma^2 = {p['sigma2']:.3g}, {rows_of(p)}"
            lines.append(
                [
                    NAMES[name],
                    model_in_words(p),
                    setting,
                    many(p["cost"]),
                    primal,
                    f"{p['error']:.2f}",
                    f"{p['seconds']:.3g}",
                ]
            )
    head = ["set", "model", "setting", "operations a row", "objective", "test error, %", "seconds"]
    return "\n".join([
        image("beyond", "what the package adds, on the axes of the figures"), table(head, lines), prose.BEYOND,
        prose.UNIT, unit_by_sigma(records, sizes), "*How far it is from the paper.* " + distance(records),
    ])  # fmt: skip


def unit_by_sigma(records, sizes):
    """The sweep over sigma with unit rows beside the paper's."""
    swept = {"taylor": sweep(records, "taylor"), "unit": sweep(records, "taylor", normalize=True)}
    swept |= {work: sweep(records, work) for work in ("fourier", "exact")}
    lines = [
        [f"{sqrt(points[0]['sigma2']):.3g}", *(f"{point['error']:.2f}" for point in points)]
        for points in zip(*swept.values(), strict=True)
    ]
    least = {work: min(points, key=lambda point: point["error"]) for work, points in swept.items()}
    told = {work: point["error"] for work, point in least.items()}
    told |= {f"{work}_first": points[0]["error"] for work, points in swept.items()}
    told |= {f"{work}_sigma": sqrt(point["sigma2"]) for work, point in least.items()}
    return "\n".join([
        image("beyond-sigma", "Cov1: test error against sigma, with unit rows"),
        f"Cov1, degree {SWEPT}, C = 3, {sizes.sweep:,} rows, without a shift: test error in percent against sigma:\n",
        table(["sigma", "Taylor", "Taylor, unit rows", "Fourier", "exact kernel"], lines),
        prose.UNIT_SIGMA.format(**told),
    ])  # fmt: skip


def model_in_words(p):
    words = [f"degree {p['degree']}", "as in the paper" if p["shift"] is None else "shift"]
    words += ["unit rows"] if "normalize" in p else []
    words += [p["solver"]] if "solver" in p else []
    words += [f"{p['n_axes']} axes"] if "n_axes" in p else []
    if "n_cells" in p:
        words.append(f"{p['n_cells']} cells" + (f" x {p['n_partitions']}" if "n_partitions" in p else ""))
    return ", ".join(words)


def distance(records):
    """A sentence for each set."""
    taylor, _, exact = curves_of(records, "adult")
    plain = taylor[0]
    (shifted,) = curve(records, "adult", "taylor", degree=plain["degree"], shift="auto", solver=None)
    told = [
        prose.SHIFTED.format(
            name="Adult", degree=plain["degree"], cost=many(plain["cost"]), shifted_cost=many(shifted["cost"]),
            primal=plain["primal"], shifted=shifted["primal"], exact=exact["primal"],
        ),
        prose.CENTRED,
    ]  # fmt: skip
    plain = pick(records, work="taylor", set="mnist", normalize=None)
    axes = min((p for p in plain if "n_axes" in p), key=lambda p: p["error"])
    full = curves_of(records, "mnist")[0][-1]
    told.append(
        prose.AXES.format(
            degree=full["degree"], axes=axes["n_axes"], cost=many(axes["cost"]), seconds=axes["seconds"],
            full_cost=many(full["cost"]), full_seconds=full["seconds"], error=axes["error"], full=full["error"],
        )
    )  # fmt: skip
    cells = min((p for p in pick(records, work="taylor", set="cov1") if p["C"] == 128), key=lambda p: p["error"])
    words = model_in_words(cells)
    told.append(prose.CELLS.format(rows=rows_of(cells), model=words, error=cells["error"], seconds=cells["seconds"]))
    return " ".join(text.strip() for text in told) + "\n"
