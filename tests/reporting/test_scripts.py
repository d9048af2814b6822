"""The scripts of the page, in node."""

import shutil
import subprocess
from pathlib import Path

import pytest


def test_arithmetic_in_node():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    tests = Path(__file__).with_name("ranking.test.js")
    done = subprocess.run([node, "--test", tests], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
