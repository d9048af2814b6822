"""Whether an installed wheel is all there; needs nothing but the package.

`dev.py wheel` runs it where there is no compiler, and cibuildwheel wherever it builds a wheel.
"""

import platform
import sys
import sysconfig
from pathlib import Path

import numpy as np

from marginrank import RankSVM, _core, make_ranking

VARIANTS_OF_X86_64 = ["baseline", "x86-64-v3", "x86-64-v4"]


def missing_variants():
    """Return the variants of the kernels that this kind of machine should have, and has not."""
    is_x86_64 = platform.machine() in {"x86_64", "AMD64"}
    expected = VARIANTS_OF_X86_64 if is_x86_64 else ["baseline"]
    return [name for name in expected if name not in _core.compiled_instruction_sets()]


def missing_files():
    """Return the files besides modules that a wheel should have, and has not."""
    package = Path(_core.__file__).parent
    names = ("py.typed", "_core.pyi", "plots/marginrank.mplstyle")
    return [name for name in names if not (package / name).is_file()]


def should_be_of_the_stable_abi():
    return sys.version_info >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED")


def coefficients():
    """Fit with each variant that runs here."""
    X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    for name in _core.instruction_sets():
        _core.use_instruction_set(name)
        yield RankSVM(C=0.01, tol=1e-12).fit(X, y, qid=qid).coef_


def main():
    if missing := missing_variants():
        sys.exit(f"{_core.__file__} lacks kernels for {', '.join(missing)}")
    if missing := missing_files():
        sys.exit(f"The wheel lacks {', '.join(missing)}")
    if should_be_of_the_stable_abi() and ".abi3." not in _core.__file__:
        sys.exit(f"{_core.__file__} is not of the stable ABI")
    first, *others = coefficients()
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5)
    compiled, run = _core.compiled_instruction_sets(), _core.instruction_sets()
    print(f"{_core.__file__} has kernels for {', '.join(compiled)}; tried: {', '.join(run)}")


if __name__ == "__main__":
    main()
