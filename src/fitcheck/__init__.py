"""fitcheck: which open-weight model fits which machines, at which context, for how many users, how fast; rent or own.

The Python API has the commands' verbs: `fit`, `cost`, `price`, `recommend`, `calibrate`; and `load_catalogue`, `read_model`,
`kv_memory`. Every error that it raises on purpose is a `fitcheck.errors.FitcheckError`.
"""

# `fitcheck.fit` and `fitcheck.cost` are packages and verbs of the API. Importing the packages first makes the names below the verbs, while
# `from fitcheck.fit.solve import …` goes on finding the package.
import fitcheck.cost

import fitcheck.fit  # noqa: F401  # isort: skip
from fitcheck.api import calibrate, cost, fit, kv_memory, load_catalogue, price, read_model, recommend
from fitcheck.errors import FitcheckError

__all__ = ["FitcheckError", "calibrate", "cost", "fit", "kv_memory", "load_catalogue", "price", "read_model", "recommend"]
