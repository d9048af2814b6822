"""What kernels in score space return, for pairs of both kinds."""

from typing import Any, NamedTuple

from torch import Tensor


class ScoreLoss(NamedTuple):
    """The loss at some scores.

    Attributes
    ----------
    by_query : Tensor of shape (n_queries, 3)
        The loss of each query, and the sizes of what was added up for it and for its derivatives.
    slopes : Tensor of shape (n_documents,)
        Its derivative by each score.
    state : LevelState or ListedState
        For products with its Hessian.
    """

    by_query: Tensor
    slopes: Tensor
    state: Any
