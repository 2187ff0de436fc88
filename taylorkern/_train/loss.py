"""The losses, as the tables of the core have them: see csrc/train/losses.h, which says how to add one."""

from dataclasses import dataclass, replace

from .. import _core


@dataclass(frozen=True)
class Loss:
    """One of the losses.

    Attributes
    ----------
    name : str
        As the core knows it.
    of : {"labels", "numbers", "classes"}
        What it is asked of; of classes: it looks at all outputs of a row together.
    lipschitz : float
        By how much it changes at most, for each unit by which the outputs of a row change, as a vector: what Theorem 1
        asks for. 0 for squared losses, which have no such bound.
    low, high : float
        The bounds of a dual variable, for a weight of 1; not for losses of classes.
    epsilon : float
        Of the losses that have such a parameter.
    """

    name: str
    of: str
    lipschitz: float
    low: float
    high: float
    epsilon: float = 0.0

    @property
    def joint(self):
        """Whether it looks at all outputs of a row together."""
        return self.of == "classes"


LOSSES = {name: Loss(name, **known) for name, known in _core.losses().items()}
LABEL_LOSSES = {name: loss for name, loss in LOSSES.items() if loss.of == "labels"}
JOINT_LOSSES = {name: loss for name, loss in LOSSES.items() if loss.joint}
# By their public names: the squared error is another name of a loss without its epsilon.
NUMBER_LOSSES = {name: loss for name, loss in LOSSES.items() if loss.of == "numbers"}
NUMBER_LOSSES["squared_error"] = LOSSES["squared_epsilon_insensitive"]


def regression_loss(name, epsilon):
    """The loss of numbers by its public name."""
    return replace(NUMBER_LOSSES[name], epsilon=0.0 if name == "squared_error" else epsilon)


def radius2(loss, n_outputs):
    """The optimum lies within lambda |w|^2 <= this, for weights of mean 1; None: it depends on the targets."""
    return _core.radius2(loss.name, n_outputs)
