"""`taylorkern demo`."""

from ..cli import Usage
from . import demo as _demo


def demo(options):
    """Show the demo, unless its picture could not be drawn."""
    problem = None if options.picture is None else _demo.picture_problem(options.picture)
    if problem:
        raise Usage(problem)
    _demo.demo(options.picture)
