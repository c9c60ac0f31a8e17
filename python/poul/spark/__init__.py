"""Score, evaluate and check on Spark: data frames of any size, with the numbers that one machine gives.

    import poul.spark

    model = poul.load("model.poul")
    effects = poul.spark.effect(model, users, id="user", policy="T2")
    found = poul.spark.evaluate(model, test)

``users`` is a Spark data frame, classic or Connect, and so are effects. The model travels with the work, so that no folder
needs to be shared; workers need this package, of the same version. No row is collected.
"""

from ._checking import check
from ._scoring import allocate, effect
from ._summing import SummedEvaluation, evaluate

__all__ = ["SummedEvaluation", "allocate", "check", "effect", "evaluate"]
