"""What goes with a penalty that makes whole features leave an additive model."""

from marginrank._base.parameters import Mention, ParameterError, given
from marginrank.objective.losses import get_loss
from marginrank.training.declarations import AdditiveDeclaration

SOLVERS = ("auto", "newton")


def refuse_beside_l1(parameters: AdditiveDeclaration) -> None:
    """Refuse a loss, a solver and curves for which there is no method."""
    if not get_loss(parameters.loss).smooth:
        raise ParameterError(
            given("loss", parameters.loss),
            " has a kink; with ",
            Mention("l1"),
            " take 'squared_hinge', 'huber' or 'logistic'.",
        )
    if parameters.solver not in SOLVERS:
        raise ParameterError(
            given("solver", parameters.solver),
            " does not know ",
            Mention("l1"),
            "; these do: 'auto', 'newton'.",
        )
    if parameters.monotone:
        raise ParameterError(
            given("l1", parameters.l1),
            " and ",
            Mention("monotone"),
            " have no solver for both; leave one of them out.",
        )
