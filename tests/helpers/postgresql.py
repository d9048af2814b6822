"""A PostgreSQL server of its own, which ends with the tests."""

import csv
import io
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVER = "postgres"


def find(program, folder):
    path = shutil.which(program, path=folder)
    if path is None:
        pytest.skip(f"{program} of PostgreSQL is not on PATH")
    return path


def server_user():
    """Return the user that runs the server, because PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SERVER).pw_uid
    except KeyError:
        pytest.skip(f"PostgreSQL does not run as root, and there is no user {SERVER}")


@contextmanager
def running_postgresql(programs=None):
    """Yield a function that runs SQL in a new server, and returns the rows.

    `programs` is the folder of the programs; by default they are on PATH.
    """
    initdb, pg_ctl, client = (find(name, programs) for name in ("initdb", "pg_ctl", "psql"))
    user = server_user()
    folder = Path(tempfile.mkdtemp(prefix="marginrank-pg-", dir="/tmp"))  # sockets: short names
    if user is not None:
        os.chown(folder, user, -1)

    # A preloaded sanitizer can hang PostgreSQL, which is not built with it.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def run(*command, **options):
        return subprocess.run(
            command,
            user=user,
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            **options,
        )

    def psql(script):
        done = run(
            client, "-h", folder, "-U", SERVER, "-v", "ON_ERROR_STOP=1", "-qt", "--csv", "-d",
            SERVER, input=script,
        )  # fmt: skip
        return list(csv.reader(io.StringIO(done.stdout)))

    data = folder / "data"
    try:
        run(initdb, "-D", data, "-U", SERVER, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run(pg_ctl, "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        yield psql
    finally:
        if (data / "postmaster.pid").exists():
            run(pg_ctl, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)
