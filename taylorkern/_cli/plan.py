"""`taylorkern plan`: what each degree would cost on these rows, and how good it would be."""

import json
import os
from importlib import import_module
from math import isfinite

from .._plan.plan import Budget, check_views
from .._plan.plan import plan as make_plan
from ..cli import Usage, say
from ..svc import TaylorSVC
from ..svr import TaylorSVR
from .files import check_output, written
from .train import REGRESSION, read_rows


def plan(options):
    """Read, look at a sample, and tell what is best; that taylorkern is of no use here is an answer too."""
    budget = {"seconds": options.budget_seconds, "bytes": options.budget_memory}
    parameters = {"solver": options.solver, "n_jobs": options.jobs, "verbose": int(not options.quiet)}
    if options.loss is not None:
        parameters["loss"] = options.loss
    estimator = TaylorSVR if options.machine == REGRESSION else TaylorSVC
    views = {"cells": options.cells, "axes": options.axes}
    try:
        Budget(budget)
        check_views(**views)
        estimator(**parameters)._check_parameters()
    except ValueError as problem:
        raise Usage(str(problem)) from None
    if options.plot is not None:
        _check_plot(options)
    rows = read_rows(options, (lambda text: None) if options.quiet else say)
    shared = {"gamma": options.gamma, "C": options.C, "degrees": options.degrees, "budget": budget}
    table = make_plan(rows.X, rows.y, estimator=estimator, **shared, **views, **parameters)
    if options.plot is not None:
        _draw(table, options.plot)
    print(json.dumps(_facts(table, rows.X.shape[1])) if options.json else table)


def _facts(table, n_columns):
    """The plan for machines: numbers that JSON does not have are None."""
    lines = [{name: _or_none(value) for name, value in row._asdict().items()} for row in table]
    facts = {"rows": table.n_rows, "columns": n_columns, "gamma": table.gamma}
    return facts | {"table": lines, "best": table.best()._asdict()}


def _or_none(value):
    return value if value is None or isinstance(value, str) or isfinite(value) else None


def _check_plot(options):
    from .demo import picture_problem

    problem = picture_problem(options.plot)
    if problem:
        raise Usage(problem)
    check_output(options.plot, options.data)


def _draw(table, name):
    from .demo import quiet_matplotlib

    with quiet_matplotlib(), written(name) as file:
        figure = import_module("matplotlib.figure").Figure(figsize=(8, 5), layout="constrained")
        table.plot(figure.add_subplot())
        figure.savefig(file, dpi=120, format=os.path.splitext(name)[1][1:].lower())
