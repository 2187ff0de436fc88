"""How much of a call is the work itself, in C, and how much is everything around it.

The work is walks, with the rows' factors s(x), steps, with the random order that they take rows in, and objectives.
"""

from contextlib import contextmanager
from functools import partial
from unittest import mock

from taylorkern import _core
from taylorkern._data.rows import Rows
from taylorkern._model import estimator as _model
from taylorkern._place import shift as _shift
from taylorkern._train.problem import Problem

VERBS = ("dot", "dot_in_order", "sort_rows", "add", "adapt", "gram", "weigh")
STEPS = ("Dual", "Pegasos", "Adagrad")


class Meter:
    """Seconds by kind; a call inside another one counts for the outer one only."""

    def __init__(self, clock):
        self.clock, self.seconds, self._inside = clock, {}, False

    def timed(self, kind, call):
        """The same call, its time counted."""

        def run(*arguments, **named):
            if self._inside:
                return call(*arguments, **named)
            self._inside, start = True, self.clock()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds[kind] = self.seconds.get(kind, 0.0) + self.clock() - start
                self._inside = False

        return run


class Watched:
    """A step of the core, its passes timed."""

    def __init__(self, meter, step):
        self._meter, self._step = meter, step

    def __getattr__(self, name):
        found = getattr(self._step, name)
        return self._meter.timed("work", found) if callable(found) else found


@contextmanager
def metered(clock):
    """A meter of what is called on one thread meanwhile: work, validation, shift, certificate, the look at the cut."""
    meter = Meter(clock)
    with mock.patch.multiple(_core, **{name: meter.timed("work", getattr(_core, name)) for name in VERBS}):
        steps = {name: partial(_watched, meter, getattr(_core, name)) for name in STEPS}
        model = {
            "check_rows": meter.timed("validation", _model.check_rows),
            "choose_shift": meter.timed("shift", _model.choose_shift),
            "certify": meter.timed("certificate", _model.certify),
            "warning_of": meter.timed("the look at what was cut", _model.warning_of),
        }
        with (
            mock.patch.multiple(_core, **steps),
            mock.patch.multiple(_model, **model),
            mock.patch.object(Problem, "margins", _method(meter, Problem.margins)),
            mock.patch.object(Problem, "terms", _method(meter, Problem.terms)),
            mock.patch.object(Problem, "shuffled", _method(meter, Problem.shuffled)),
            mock.patch.object(Rows, "know_factors", _method(meter, Rows.know_factors)),
            mock.patch.object(_shift, "shift_rows", meter.timed("shift", _shift.shift_rows)),
        ):
            yield meter


def _method(meter, call):
    return lambda self, *arguments, **named: meter.timed("work", call)(self, *arguments, **named)


def _watched(meter, make, *arguments):
    return Watched(meter, make(*arguments))
