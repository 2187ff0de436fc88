"""The command line of the benchmarks that print a table: which parts, how much work, which clock."""

import argparse
import sys

from . import data
from .table import Row, dump, print_header, print_machine, print_row
from .timing import CLOCKS, STEADY, interleave, one_thread


class Timed:
    """What the benchmarks of estimators share: where the data is, how much work is done, and how it is timed."""

    def __init__(self, directory, sizes, clock):
        self.directory, self.sizes, self.clock = directory, sizes, clock

    def seconds(self, **work):
        """The least of several runs of each."""
        return interleave(work, repeats=self.sizes.repeats, clock=self.clock)

    def once(self, work):
        """(what it returns, its seconds)."""
        clock = CLOCKS[self.clock]
        start = clock()
        result = work()
        return result, clock() - start


def run(name, doc, parts, bench, sizes, arguments=None, clock=STEADY):
    """Run the chosen parts on one thread and print their rows.

    Parameters
    ----------
    name : str
        The module, for messages.
    doc : str
        Its docstring.
    parts : dict of str to function
        Each takes the benchmark and yields rows; its docstring begins with its letter and a colon.
    bench : callable
        Makes the benchmark from the folder of the data, the sizes and the clock.
    sizes : tuple
        The sizes of a full and of a quick run.
    arguments : list of str, default=None
        The command line.
    clock : {"wall", "cpu"}
        What to time by, unless the command line says so.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=doc.splitlines()[0])
    data.add_argument(parser)
    parser.add_argument("--quick", action="store_true", help="less work and fewer repeats: rough figures")
    parser.add_argument("--only", metavar="PARTS", default=",".join(parts), help="parts, for example a,d")
    parser.add_argument("--clock", choices=CLOCKS, default=clock, help=f"what to time by (default: {clock})")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    unknown = [part for part in chosen if part not in parts]
    if unknown:
        parser.error(f"no part {unknown[0]!r}; parts are {', '.join(parts)}")

    work = bench(options.data, sizes[options.quick], options.clock)
    rows: list[Row] = []
    print_machine()
    print(f"{'quick run' if options.quick else 'full run'}, one thread, {options.clock} time")
    for part in chosen:
        print(f"{part}: {parts[part].__doc__.split(': ', 1)[1]}")
    print_header()
    try:
        with one_thread():
            for part in chosen:
                for row in parts[part](work):
                    print_row(row)
                    rows.append(row)
    except data.MissingData as problem:
        sys.exit(f"{name}: {problem}")
    finally:
        if options.json:
            dump(rows, options.json)
    missed = sum(row.met is False for row in rows)
    print(f"{len(rows)} rows, {sum(row.met is True for row in rows)} targets met, {missed} missed")
