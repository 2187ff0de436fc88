"""The arguments of the command line: a `Command` for each command, and the types of what stands behind options."""

import argparse
import re
import sys
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from .._train.loss import LABEL_LOSSES, NUMBER_LOSSES

SOLVERS = ("dual", "pegasos", "adagrad")
MAX_DEGREE = 170


def parsers(arguments):
    """(the parser, that of each command); of the commands only the one that is named has arguments."""
    parser = _Parser(prog="taylorkern", description=sys.modules[__package__].__doc__)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and end")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=_Parser)
    for name, (about, examples, module, quick, add) in COMMANDS.items():
        epilog = "\n".join(["examples:", *(f"  {line}" for line in examples)]) if examples else None
        command = commands.add_parser(name, help=about.split(": ")[0], description=about, epilog=epilog)
        command.set_defaults(module=module, quick=quick)
        if name in arguments:
            add(command)
    return parser, commands.choices


class Command(NamedTuple):
    """A command; the function of its name, in its module, runs it."""

    about: str
    examples: tuple[str, ...]
    module: str
    quick: bool  # whether it does without what `cli` leaves out of scikit-learn
    add: Callable[[argparse.ArgumentParser], None]


class _Parser(argparse.ArgumentParser):
    """Keeps the lines of examples, and wants options by their whole names: a later version may have more of them."""

    def __init__(self, **options):
        super().__init__(**options, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
        if self.description:
            import textwrap

            self.description = textwrap.fill(self.description, 100)

    def exit(self, status=0, message=None):
        """End the process, after what has been printed is out: `main` knows of closed pipes, the interpreter less."""
        sys.stdout.flush()
        super().exit(status, message)


class _Version(argparse.Action):
    """Told when asked for: it takes a while to find out."""

    def __call__(self, parser, *_):
        from .. import __version__

        print(f"taylorkern {__version__}")
        parser.exit()


def _train(command):
    add = command.add_argument
    add(
        "data",
        metavar="DATA",
        help="svmlight rows: a file, which may end with .gz, .bz2 or .xz; - is the standard input",
    )
    add("model", metavar="MODEL", nargs="?", help="the file to write (default: DATA.model in this folder)")
    add("-s", dest="machine", type=int, choices=(0, 3), default=0, help="0: classify (default), 3: regression")
    add(
        "-t",
        dest="kernel",
        type=_kernel,
        default=argparse.SUPPRESS,
        metavar="{1,2}",
        help="1: polynomial kernel, 2: gaussian (default)",
    )
    add("--kernel", choices=("gaussian", "rbf", "exponential", "polynomial", "poly"), default="gaussian",
        help="the same by name: rbf is gaussian, and poly polynomial")  # fmt: skip
    add("-d", dest="degree", type=_degree, default="auto", metavar="DEGREE",
        help="of the expansion (default: auto, the least that the rows need)")  # fmt: skip
    add("-g", dest="gamma", type=_gamma, default="scale", metavar="GAMMA",
        help="of the kernel: a number, scale (default), or auto, LIBSVM's 1 / columns")  # fmt: skip
    add("-r", dest="coef0", type=_number, default=1.0, metavar="COEF0", help="of the polynomial kernel (default: 1)")
    add("-c", dest="C", type=_positive, default=1.0, metavar="C", help="the weight of the losses (default: 1)")
    add(
        "-p", dest="epsilon", type=_number, default=0.1, metavar="EPSILON", help="of a regression's loss (default: 0.1)"
    )
    add(
        "-e",
        dest="tol",
        type=_positive,
        default=1e-3,
        metavar="TOL",
        help="the relative gap to stop at (default: 0.001)",
    )
    add("--weight", action="append", default=[], metavar="LABEL:WEIGHT",
        help="multiply C for a class; or balanced. -wLABEL WEIGHT is the same")  # fmt: skip
    add(
        "--loss",
        choices=(*LABEL_LOSSES, *NUMBER_LOSSES),
        help=f"{', '.join(LABEL_LOSSES)} classify (default: hinge for two classes, squared_hinge for more), the others "
        "are for numbers (default: epsilon_insensitive)",
    )
    add("--solver", choices=SOLVERS, default="dual", help="(default: dual)")
    add("--multi-class", choices=("ovr", "crammer_singer", "multinomial"), default="ovr",
        help="what more than two classes are trained as (default: ovr)")  # fmt: skip
    add("--max-iter", type=_epochs, default=1000, metavar="N", help="epochs at most (default: 1000); -1: no limit")
    add("--cells", type=_count, default=1, metavar="N",
        help="expand around so many centres, for small bandwidths (default: 1)")  # fmt: skip
    add("--partitions", type=_count, default=1, metavar="N", help="divide rows into cells so many times (default: 1)")
    add("--axes", type=_count, metavar="N", help="expand along so many principal axes, for long rows")
    add("--no-shift", action="store_true", help="expand the rows as they are given")
    add("--no-normalize", action="store_true", help="do not divide the features of a row by their norm")
    add("--stream", action="store_true",
        help="read DATA anew for each epoch, in memory that does not grow with it; it may be part-*.gz")  # fmt: skip
    add("--epochs", type=_count, metavar="N", help="passes that train, with --stream (default: 1)")
    add("--checkpoint", metavar="DIR",
        help="a folder of its own: the same command goes on from there when this one was killed")  # fmt: skip
    add("--checkpoint-every", type=_seconds, default=60.0, metavar="SECONDS",
        help="from one checkpoint to the next (default: 60)")  # fmt: skip
    add("--float32", action="store_true", help="work in single precision")
    add("--seed", type=_whole, default=0, metavar="N", help="of the order of rows (default: 0)")
    add("--keep", action="store_true", help="after Ctrl-C, write the model that training had come to")
    add("--features", type=_count, metavar="N", help="columns (default: up to the highest index)")
    add("--verbose", action="store_true", help="show the epochs; so it does on a terminal")
    _common(command)


def _plan(command):
    add = command.add_argument
    add("data", metavar="DATA", help="svmlight rows: a file, or - for the standard input")
    add("-s", dest="machine", type=int, choices=(0, 3), default=0, help="0: classify (default), 3: regression")
    add("-g", dest="gamma", type=_gamma, default="scale", metavar="GAMMA",
        help="of the kernel: a number, scale (default), or auto, LIBSVM's 1 / columns")  # fmt: skip
    add("-c", dest="C", type=_positive, default=1.0, metavar="C", help="the weight of the losses (default: 1)")
    add("--degrees", type=_degrees, default=range(1, 9), metavar="DEGREES", help="as 1-6 or 1,2,4 (default: 1-8)")
    add("--cells", type=_cells, default=(1,), metavar="NUMBERS", help="of cells to look at, as 1,16,64 (default: 1)")
    add("--axes", type=_axes, default=(None,), metavar="NUMBERS",
        help="of principal axes to look at, as all,40 (default: all, the columns)")  # fmt: skip
    add("--budget-seconds", type=_positive, metavar="SECONDS", help="that a fit may take (default: any)")
    add("--budget-memory", metavar="BYTES", help="that training may take, as 2GB or 500MiB (default: what is free)")
    add("--loss", choices=(*LABEL_LOSSES, *NUMBER_LOSSES), help="as for train")
    add("--solver", choices=SOLVERS, default="dual", help="(default: dual)")
    add("--plot", metavar="FILE", help="draw errors and seconds by degree; needs matplotlib")
    add("--float32", action="store_true", help="work in single precision")
    add("--features", type=_count, metavar="N", help="columns (default: up to the highest index)")
    _common(command, quiet="no progress")


def _predict(command):
    add = command.add_argument
    add("data", metavar="DATA", help="svmlight rows, with true or with any labels: a file, or - for the standard input")
    add("model", metavar="MODEL", help="what train wrote")
    add("output", metavar="OUTPUT", nargs="?", default="-", help="where to (default: -, the standard output)")
    add("-b", dest="probabilities", type=int, choices=(0, 1), default=0,
        help="1: also the probability of each class, of a model with --loss log_loss")  # fmt: skip
    _common(command)


def _info(command):
    command.add_argument("model", metavar="MODEL", help="what train wrote, or save in Python")
    command.add_argument("--json", action="store_true", help="for machines")


def _convert(command):
    add = command.add_argument
    add("input", metavar="INPUT", help="a model file, svmlight rows (- is the standard input), or .npz")
    add("output", metavar="OUTPUT", help="a name that ends with .txt, .json, .npz or .svm")
    add("--top", type=_count, default=20, metavar="K", help="how many monomials for each class (default: 20)")
    add("--features", type=_count, metavar="N", help="columns of svmlight rows (default: up to the highest index)")
    add("--zero-based", action="store_true", help="the indices of svmlight rows begin at 0, not at 1")


def _demo(command):
    command.add_argument(
        "--picture", metavar="FILE", help="where to draw the picture, which else goes to a new temporary file"
    )


COMMANDS = {
    "plan": Command(
        "tell what each degree would cost and how good it would be: before anything is trained, from a sample of rows",
        (
            "taylorkern plan a9a",
            "taylorkern plan -g 0.0125 --degrees 1-6 --budget-seconds 60 --budget-memory 2GB a9a",
            "taylorkern plan -g 0.1 --cells 1,16,64 --degrees 2-4 --json --plot plan.png a9a",
        ),
        "._cli.plan",
        True,
        _plan,
    ),
    "train": Command(
        "train a model on a file of svmlight rows: its options have LIBSVM's names where it has any",
        (
            "taylorkern train a9a",
            "taylorkern train -c 1 -g 0.0125 -d 3 a9a adult.model",
            "taylorkern train -s 3 --loss squared_error -c 10 abalone abalone.model",
            "xzcat big.xz | taylorkern train --solver adagrad --max-iter 5 - big.model",
            "taylorkern train --stream --solver adagrad --epochs 2 --checkpoint training 'part-*.gz' big.model",
        ),
        "._cli.train",
        True,
        _train,
    ),
    "predict": Command(
        "predict the label or number of each svmlight row: one a line, in constant memory",
        (
            "taylorkern predict a9a.t adult.model labels",
            "xzcat big.t.xz | taylorkern predict - big.model - | sort | uniq -c",
        ),
        "._cli.predict",
        True,
        _predict,
    ),
    "info": Command(
        "tell what a model file holds",
        ("taylorkern info adult.model", "taylorkern info --json adult.model"),
        "._cli.convert",
        True,
        _info,
    ),
    "convert": Command(
        "write a model as text, or data in another form: the endings of the files say what is made of what",
        (
            "taylorkern convert adult.model adult.txt    its strongest monomials, as a table",
            "taylorkern convert adult.model adult.json   these, and all that info tells",
            "taylorkern convert a9a a9a.npz              svmlight rows for scipy.sparse.load_npz, and y",
            "taylorkern convert a9a.npz a9a.svm          and back",
        ),
        "._cli.convert",
        True,
        _convert,
    ),
    "demo": Command(
        "the Gaussian kernel approximated, and an SVM trained with it next to scikit-learn's; needs no download",
        (),
        "._cli.demo_command",
        False,
        _demo,
    ),
}


def _common(command, quiet="no summary, no progress"):
    add = command.add_argument
    add("--zero-based", action="store_true", help="indices begin at 0, not at 1")
    add("--jobs", type=_jobs, default=1, metavar="N", help="threads; -1: as many as there are cores (default: 1)")
    add("--json", action="store_true", help="the summary for machines")
    add("-q", dest="quiet", action="store_true", help=quiet)


def with_weights(arguments):
    """LIBSVM's -w1 2.5 as --weight=1:2.5."""
    result, rest = [], iter(arguments)
    for argument in rest:
        if arguments[0] == "train" and re.fullmatch(r"-w[-+]?[0-9.]+", argument):
            argument = f"--weight={argument[2:]}:{next(rest, '')}"
        result.append(argument)
    return result


# Types of arguments; what they raise is told with the usage.


def _number(text):
    value = float(text)
    if not abs(value) < inf:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value


def _positive(text):
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _cells(text):
    return tuple(map(_count, text.split(",")))


def _axes(text):
    return tuple(None if part == "all" else _count(part) for part in text.split(","))


def _seconds(text):
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is less than 0")
    return value


def _degree(text):
    return text if text == "auto" else _count(text)


def _degrees(text):
    degrees: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= MAX_DEGREE:
            raise argparse.ArgumentTypeError(f"{text} is not degrees from 1 to {MAX_DEGREE}, as 1-6 or 1,2,4")
        degrees.update(range(first, last + 1))
    return sorted(degrees)


def _whole(text):
    value = int(text)
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not one of 0 to 2**32 - 1")
    return value


def _jobs(text):
    return -1 if text == "-1" else _count(text)


def _epochs(text):
    return -1 if text == "-1" else _count(text)


def _gamma(text):
    return text if text in ("scale", "auto") else _positive(text)


def _kernel(text):
    if text not in ("1", "2"):
        raise argparse.ArgumentTypeError(f"{text} is not 1 (polynomial) or 2 (gaussian); other types there are not")
    return {"1": "polynomial", "2": "gaussian"}[text]
