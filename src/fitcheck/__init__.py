"""fitcheck: which open-weight model fits which machines, at which context, for how many users, how fast; rent or own.

The Python API has the commands' verbs: `load_catalogue` and `fit`. Every error it raises on purpose is a `fitcheck.errors.FitcheckError`.
"""

# `fitcheck.fit` is a package of the engine and the verb of the API. Importing the package first makes the name below the verb, while
# `from fitcheck.fit.solve import …` goes on finding the package.
import fitcheck.fit  # noqa: F401  # isort: skip
from fitcheck.api import fit, load_catalogue
from fitcheck.errors import FitcheckError

__all__ = ["FitcheckError", "fit", "load_catalogue"]
