"""The losses: what Python needs to know of them. Their formulas are in csrc/loss.h and csrc/joint.h."""

from dataclasses import dataclass
from math import e, sqrt


@dataclass(frozen=True)
class Loss:
    """One of the losses.

    Attributes
    ----------
    name : str
        As csrc knows it.
    lipschitz : float
        By how much it changes at most, for each unit by which the outputs of a row change, as a vector: what Theorem 1
        asks for. 0 for squared losses, which have no such bound.
    joint : bool
        Whether it looks at all outputs of a row together.
    epsilon : float
        Of the insensitive losses.
    """

    name: str
    lipschitz: float
    joint: bool = False
    epsilon: float = 0.0


LABEL_LOSSES = {
    "hinge": Loss("hinge", 1.0),
    "squared_hinge": Loss("squared_hinge", 0.0),
    "log_loss": Loss("log_loss", 1.0),
}
JOINT_LOSSES = {
    "crammer_singer": Loss("crammer_singer", sqrt(2), joint=True),
    "multinomial": Loss("multinomial", sqrt(2), joint=True),
}


def regression_loss(name, epsilon):
    """The loss of numbers by its public name."""
    if name == "epsilon_insensitive":
        return Loss(name, 1.0, epsilon=epsilon)
    return Loss("squared_epsilon_insensitive", 0.0, epsilon=epsilon if name != "squared_error" else 0.0)


NUMBER_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared_error")


def radius2(loss, n_outputs):
    """The optimum lies within lambda |w|^2 <= this, for weights of mean 1; None: it depends on the targets."""
    known = {"hinge": 1.0, "squared_hinge": 0.5, "log_loss": 0.2785, "crammer_singer": 1.0}
    if loss.name == "multinomial":
        from scipy.special import lambertw

        return float(lambertw((n_outputs - 1) / e).real)
    return known.get(loss.name)
