"""The command line: `taylorkern plan | train | predict | info | convert | demo`. See docs/command-line.md.

A command is a function that takes the parsed options, in a module that is imported when the command is chosen; its
arguments are in _cli/arguments.py. What goes wrong it raises: `Usage` for a wrong command line, a ValueError or an
OSError for wrong data.
"""

import gc
import os
import sys
from argparse import Namespace
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from types import ModuleType

from ._cli.arguments import parsers, with_weights

OK, WRONG, USAGE, INTERRUPTED = 0, 1, 2, 130


class Usage(Exception):
    """The command line makes no sense; the message says why."""


def run():
    """What the program `taylorkern` calls, in a process of its own that starts and ends quickly."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # we never wait for BLAS, but for its threads to start
    code = main(own_process=True)
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(code)  # without tidying up the memory


def main(arguments=None, *, own_process=False):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, default=None
        What stands behind the program's name; None: what the process was given.
    own_process : bool, default=False
        Whether nothing else runs in this process, so that imports may be cut short.

    Returns
    -------
    code : int
        0; 1 after an error, which is told in one line on the standard error; 130 after Ctrl-C. A wrong command line
        raises SystemExit with the code 2.
    """
    arguments = with_weights(sys.argv[1:] if arguments is None else list(arguments))
    parser, commands = parsers(arguments)
    options = Namespace(command="")
    try:
        parser.parse_args(arguments, options)
        with _quick_imports() if own_process and options.quick else nullcontext():
            module = import_module(options.module, __package__)
        with _plain_warnings(options.command):
            getattr(module, options.command)(options)
        sys.stdout.flush()
    except Usage as problem:
        commands[options.command].error(one_line(problem))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        return WRONG
    except KeyboardInterrupt as stop:
        say(f"interrupted{stop}")
        return INTERRUPTED
    except (OSError, ValueError, MemoryError) as problem:
        say(f"taylorkern {options.command}: {one_line(problem)}")
        return WRONG
    return OK


def say(text):
    """A line on the standard error."""
    print(text, file=sys.stderr, flush=True)


def one_line(problem):
    """What an exception says."""
    if isinstance(problem, OSError) and problem.strerror:
        text = problem.strerror if problem.filename is None else f"{problem.filename}: {problem.strerror}"
    else:
        text = str(problem) or type(problem).__name__
    return " ".join(text.split())


@contextmanager
def _plain_warnings(command):
    """Warnings as one line each."""
    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(f"taylorkern {command}: warning: {one_line(message)}")
        yield


# Starting quickly.


class _Later(ModuleType):
    """Stands in for a module, and imports it when something is asked of it."""

    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _quick_imports():
    """Import scikit-learn without scipy.stats and pandas, which we do not use: bench/command.py shows what that saves.

    Only for a process of our own, since scikit-learn then takes pandas for not installed.
    """
    gc.disable()  # of all that is made now nothing is garbage
    sys.modules["scipy.stats"] = _Later("scipy.stats")
    sys.modules["pandas"] = None  # type: ignore[assignment]  # an ImportError
    try:
        yield
    finally:
        del sys.modules["pandas"]
        if isinstance(sys.modules.get("scipy.stats"), _Later):
            del sys.modules["scipy.stats"]
        gc.enable()
