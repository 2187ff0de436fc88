"""The command line: `taylorkern demo`."""

import argparse
import sys

from . import __version__
from .demo import demo, picture_problem


def main(arguments=None):
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="taylorkern", description=sys.modules["taylorkern"].__doc__)
    parser.add_argument("--version", action="version", version=f"taylorkern {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    about = "the Gaussian kernel approximated, and an SVM trained with it next to scikit-learn's; needs no download"
    command = commands.add_parser("demo", help=about, description=about)
    command.add_argument(
        "--picture", metavar="FILE", help="where to draw the picture, which else goes to a new temporary file"
    )
    chosen = parser.parse_args(arguments)
    problem = None if chosen.picture is None else picture_problem(chosen.picture)
    if problem:
        command.error(problem)
    demo(chosen.picture)
    return 0
