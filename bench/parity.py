"""The defaults of TaylorSVC and TaylorSVR beside those of SVC and SVR: test scores, warnings and times.

    python -m bench.parity --data DIR [--quick] [--only default,time] [--sets moons,letter] [--variant degree=4]

Prints a table for each setting (scores in percent: accuracy, or R2), and then one with targets. One thread, CPU time,
from the call to the fitted model. The exact models' scores and times are kept in the cache of `bench.data`.
"""

import argparse
import ast
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from inspect import signature
from itertools import product

import numpy as np
from sklearn.preprocessing import StandardScaler

from taylorkern import TaylorSVC

from . import data
from .compare import FULL, QUICK, SETTINGS, Record, compare, variant
from .run import Timed
from .table import Row, dump, print_header, print_machine, print_row
from .tables import TABLES, rare_classes
from .timing import CLOCKS, STEADY, interleave, one_thread


def judged(setting: str, records: list[Record]) -> Iterator[Row]:
    """The targets of one setting."""
    n = len(records)
    points = np.array([record.points for record in records])
    warned = np.array([bool(record.warning) for record in records])
    lost = np.where(np.isnan(points), np.inf, -points)
    silent = int((~warned).sum())
    best = float(np.nanmedian([r.exact_seconds / r.seconds for r in records]))
    unit, peer = "sets", "SVC, SVR"
    near = int((lost <= 1).sum())
    yield Row(setting, f"within 1 point or better, all {n} sets", peer, unit, near, n, 100 * near / n, " %")
    near = int(((lost <= 1) & ~warned).sum())
    share = 100 * near / silent if silent else 100.0
    yield Row(setting, "within 1 point, of those without a warning", peer, unit, near, silent, share, " %", at_least=90)
    far = int(((lost > 2) & ~warned).sum())
    yield Row(setting, "more than 2 points worse, and no warning", peer, unit, far, silent, far, "", at_most=0)
    idle = int(((lost <= 0.5) & warned).sum())
    yield Row(setting, "warned though within half a point", peer, unit, idle, n, 100 * idle / n, " %", at_most=10)
    yield Row(setting, "how many times faster a fit is, the median", peer, "", best, None, best)


LINE = "{:<14} {:<9} {:>7} {:>7} {:>7}  {:<6} {:>9} {:>9} {:>6} {:>6}  {}"
HEAD = ("set", "task", "exact", "ours", "points", "warned", "exact s", "ours s", "degree", "epochs", "")


def print_table(setting: str, records: Iterable[Record]) -> list[Record]:
    """A line for each record, as it comes; returns all of them."""
    head = LINE.format(*HEAD).rstrip()
    print(f"\n{setting}\n{head}\n{'-' * len(head)}", flush=True)
    found = []
    for r in records:
        line = LINE.format(
            r.table, r.task, f"{100 * r.exact:.2f}", f"{100 * r.ours:.2f}", f"{r.points:+.2f}",
            "yes" if r.warning else "", f"{r.exact_seconds:.3g}", f"{r.seconds:.3g}", r.degree, r.epochs,
            r.problem[:70],
        )  # fmt: skip
        print(line.rstrip(), flush=True)
        found.append(r)
    return found


class Bench(Timed):
    """The parts that have targets and are no settings; each yields its rows."""

    def __init__(self, options):
        super().__init__(options.data, QUICK if options.quick else FULL, options.clock)
        self.options, self.whole = options, not options.quick
        self.make = variant(**options.variant)

    def setting(self, name):
        """The table of a setting, all sets."""
        records = compare(self.options.sets, [name], self.make, directory=self.directory, sizes=self.sizes)
        return print_table(name, records)

    def least(self, models, X, y):
        """Seconds of each model's fit, in turns, the least of several."""
        work = {name: lambda model=model: silently(model.fit, X, y) for name, model in models.items()}
        return interleave(work, repeats=5 if self.whole else 3, clock=self.clock)

    def times(self):
        """The default fit against the one before there were unit rows, which has degree 3."""
        n_rows, target = (100_000, 1.3) if self.whole else (3000, None)
        for name in ("adult", "covertype"):
            X, y = data.load(name, self.directory)
            X, y = data.sample(X, n_rows), data.sample(y, n_rows)
            if name == "covertype":
                X = StandardScaler().fit_transform(X.toarray())
            models = {"default": self.make(regression=False), "before": TaylorSVC(**BEFORE)}
            seconds = self.least(models, X, y)
            ours, before = (f"degree {m.degree_}, {epochs(m)} epochs" for m in models.values())
            yield Row(
                "time", f"fit {name}, {len(y)} rows, {ours}", before, "s", seconds["default"], seconds["before"],
                seconds["default"] / seconds["before"], at_most=target,
            )  # fmt: skip

    def rare(self):
        """Rare classes and near-duplicates: the default fit against the squared hinge's."""
        X, y = rare_classes(30_000 if self.whole else 3000)
        models = {
            "default": self.make(regression=False),
            "squared hinge": variant(**self.options.variant | {"loss": "squared_hinge"})(regression=False),
        }
        seconds = self.least(models, X, y)
        ours, squared = (f"{epochs(model)} epochs" for model in models.values())
        yield Row(
            "rare", f"fit rare classes, {len(y)} rows, {ours}", f"squared hinge, {squared}", "s", seconds["default"],
            seconds["squared hinge"], seconds["default"] / seconds["squared hinge"], at_most=3 if self.whole else None,
        )  # fmt: skip

    def covertype(self):
        """Covertype, class 1 against the rest, the paper's split, degree 4 by adagrad."""
        X, y, X_test, y_test = data.covertype_split(self.directory)
        n_rows = len(y) if self.whole else 20_000
        model = TaylorSVC(C=128.0, gamma=8.0, degree=4, solver="adagrad", max_iter=8, tol=1e-9, random_state=0)
        _, seconds = self.once(lambda: silently(model.fit, X[:n_rows], y[:n_rows]))
        error = 100 * np.mean(model.predict(X_test) != y_test)
        yield Row(
            "cov1", f"class 1 or not, {n_rows} rows, gamma 8, {seconds:.1f} s", "the paper, 100 epochs",
            "% test error", error, 12.3, error, " %", at_most=12 if self.whole else None,
        )  # fmt: skip

    def letter(self):
        """Letter, degree 4, squared hinge: the least test error of a small grid."""
        (X, y), (X_test, y_test) = (data.load(name, self.directory) for name in ("letter", "letter-test"))
        n_rows = len(y) if self.whole else 3000
        X, y = data.sample(X, n_rows), data.sample(y, n_rows)
        best = (np.inf, "", 0.0)
        for gamma, C in product((0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 16.0)):
            model = TaylorSVC(degree=4, loss="squared_hinge", gamma=gamma, C=C, tol=0.01, random_state=0)
            _, seconds = self.once(lambda model=model: silently(model.fit, X, y))
            error = 100 * np.mean(model.predict(X_test) != y_test)
            print(f"   gamma {gamma:g}, C {C:g}: {error:.2f} % test error, {seconds:.1f} s", flush=True)
            best = min(best, (error, f"gamma {gamma:g}, C {C:g}", seconds))
        error, which, seconds = best
        yield Row(
            "letter", f"squared hinge, {n_rows} rows, {which}, {seconds:.1f} s", "SVC at its best", "% test error",
            error, 2.4, error, " %", at_most=2.2 if self.whole else None,
        )  # fmt: skip


def epochs(model) -> int:
    """Of a fitted model, the most of its outputs."""
    return int(np.max(model.n_iter_))


def silently(call, *arguments):
    """Without warnings: those that count are in the tables of the settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


# The default before there were unit rows, as far as there are other ones now.
BEFORE = {"degree": 3, "loss": "hinge", "multi_class": "ovr"}
if "normalize" in signature(TaylorSVC).parameters:
    BEFORE["normalize"] = False

PARTS = {"time": Bench.times, "rare": Bench.rare, "cov1": Bench.covertype, "letter": Bench.letter}


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """For argparse: names of these, with commas between them."""

    def parse(text):
        found = text.split(",")
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {unknown[0]!r}; there are {', '.join(known)}")
        return found

    return parse


def assignments(text: str) -> dict[str, object]:
    """For argparse: "loss=squared_hinge,degree=4" as a dictionary; what is no literal is a word."""
    found = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[key] = value
    return found


def main(arguments=None):
    parts = [*SETTINGS, *PARTS]
    parser = argparse.ArgumentParser(prog="python -m bench.parity", description=__doc__.splitlines()[0])
    data.add_argument(parser)
    parser.add_argument("--quick", action="store_true", help="at most 3000 rows of each set: rough figures")
    parser.add_argument("--only", metavar="PARTS", type=names(parts), default=parts, help="for example default,time")
    parser.add_argument("--sets", metavar="NAMES", type=names(TABLES), default=[*TABLES], help="for example moons")
    parser.add_argument(
        "--variant", metavar="A=B", type=assignments, default={}, help="parameters of our models, by commas"
    )
    parser.add_argument("--clock", choices=CLOCKS, default=STEADY, help=f"what to time by (default: {STEADY})")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args(arguments)
    try:
        bench, rows, records = Bench(options), [], []
    except ValueError as problem:
        parser.error(str(problem))
    print_machine()
    print(f"{'quick run' if options.quick else 'full run'}, one thread, {options.clock} time {options.variant or ''}")
    try:
        for setting in SETTINGS:
            if setting in options.only:
                found = bench.setting(setting)
                records += found
                rows += judged(setting, found)
        print()
        print_header()
        for row in rows:
            print_row(row)
        with one_thread():
            for part in PARTS:
                for row in PARTS[part](bench) if part in options.only else ():
                    print_row(row)
                    rows.append(row)
    except data.MissingData as problem:
        sys.exit(f"bench.parity: {problem}")
    finally:
        if options.json:
            dump(rows, options.json, records=[asdict(record) | {"points": record.points} for record in records])
    missed = sum(row.met is False for row in rows)
    print(f"{len(rows)} rows, {sum(row.met is True for row in rows)} targets met, {missed} missed")


if __name__ == "__main__":
    main()
