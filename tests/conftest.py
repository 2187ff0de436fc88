"""Settings for all tests."""

import signal
import sys
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from taylorkern import _core

sys.path.insert(0, str(Path(__file__).parent))  # for `import reference`

# A shell that runs tests in the background has Ctrl-C ignored, by the processes that the tests begin, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("same every time", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("same every time")


def pytest_addoption(parser):
    """For runs that take long for each test: with sanitizers."""
    parser.addoption("--one-of", type=int, default=1, metavar="N", help="run about one of N tests, always the same")


def pytest_collection_modifyitems(config, items):
    """Those whose names say so: neighbours, which differ in one parameter, are not all left out."""
    n = config.getoption("--one-of")
    chosen = [crc32(item.nodeid.encode()) % n == 0 for item in items]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, chosen, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, chosen, strict=True) if kept]


@pytest.fixture(autouse=True, scope="session")
def threads_for_little_work():
    """As many threads as n_jobs says, even for the few rows of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taylorkern._train.problem.WORTH_THREADS", 0)
        yield


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    """Each instruction set that this machine can run, in turn."""
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)
