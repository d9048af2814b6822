"""What workers have in their memory."""

import gc
import time
from contextlib import contextmanager

PATIENCE = 300.0  # seconds; what is left after that stays, even on a busy machine


def keys_on_workers(client):
    return {key for keys in client.has_what().values() for key in keys}


def wait_until(condition):
    """Fail if a condition does not come true, however busy the machine is."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def nothing_left_on(client):
    """Expect that what happens inside leaves nothing behind."""
    before = keys_on_workers(client)
    yield

    def nothing_left():
        gc.collect()  # again, as the client's own thread may be the last to let go of a cycle
        return not keys_on_workers(client) - before

    wait_until(nothing_left)
