"""What workers have in their memory."""

import gc
import time
from contextlib import contextmanager

PATIENCE = 300.0  # seconds; what is left after that stays, even on a busy machine


def keys_on_workers(client):
    return {key for keys in client.has_what().values() for key in keys}


@contextmanager
def nothing_left_on(client):
    """Expect that what happens inside leaves nothing behind."""
    before = keys_on_workers(client)
    yield
    deadline = time.monotonic() + PATIENCE
    while keys_on_workers(client) - before and time.monotonic() < deadline:
        gc.collect()  # again, as the client's own thread may be the last to let go of a cycle
        time.sleep(0.05)
    assert not keys_on_workers(client) - before
