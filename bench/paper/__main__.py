"""The paper's tables and figures, from one command: `python -m bench.paper --data DIR [--quick] [--only NAME]`."""

import argparse
import sys
from pathlib import Path

from .. import data
from ..run import Timed
from ..table import print_header, print_machine, print_row
from ..timing import STEADY, one_thread
from .cache import Results, default_folder
from .page import write
from .parts import FULL, PARTS, QUICK
from .work import Work


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.paper", description=__doc__.splitlines()[0])
    data.add_argument(parser)
    parser.add_argument("--quick", action="store_true", help="on few rows: whether the claims keep their shape")
    parser.add_argument("--only", metavar="NAME", help=f"parts, for example table1,figure1 (of {', '.join(PARTS)})")
    parser.add_argument("--cache", metavar="DIR", type=Path, default=default_folder(), help="results are kept there")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="where page, figures and tables go (default: this folder)"
    )
    options = parser.parse_args(arguments)
    chosen = options.only.split(",") if options.only else list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}; parts are {', '.join(PARTS)}")

    sizes = QUICK if options.quick else FULL
    results = Results(options.cache, Work(options.data, Timed(options.data, sizes, STEADY).once))
    print_machine()
    try:
        with one_thread():
            for part in chosen:
                results.complete(part, list(PARTS[part](sizes)))
    except data.MissingData as problem:
        sys.exit(f"bench.paper: {problem}")
    except KeyboardInterrupt:
        print(f"\nstopped: what is done is kept in {options.cache}, and the same command goes on", file=sys.stderr)
        sys.exit(130)
    folder = options.out or (options.cache / "quick" if options.quick else Path(__file__).parent)
    judged = write(results, sizes, folder)
    print_header()
    for row in judged:
        print_row(row)
    missed = sum(row.met is False for row in judged)
    print(f"{len(judged)} claims, {missed} missed; the page is {folder / 'RESULTS.md'}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
