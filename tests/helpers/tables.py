"""Tables of cases that are too alike, and too quick, to be tests of their own."""

import functools
import inspect
import reprlib


def each(names, cells):
    """Run a test for every cell of a table, as one test; a failure names its cell.

    Written like ``pytest.mark.parametrize``, for a factor that takes the same path every time.
    Fixtures are shared by all cells.
    """
    names = [names] if isinstance(names, str) else list(names)
    cells = [(cell,) if len(names) == 1 else cell for cell in cells]

    def decorate(test):
        parameters = inspect.signature(test).parameters.values()

        @functools.wraps(test)
        def run(**fixtures):
            for cell in cells:
                values = dict(zip(names, cell, strict=True))
                try:
                    test(**fixtures, **values)
                except Exception as error:
                    error.add_note(f"in the case {reprlib.repr(values)}")
                    raise

        run.__signature__ = inspect.Signature([p for p in parameters if p.name not in names])
        return run

    return decorate
