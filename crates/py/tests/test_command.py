"""The command that the wheel brings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import linetender

COMMAND = Path(sys.prefix) / "bin" / "linetender"


def test_it_is_installed_and_has_the_version_of_the_package() -> None:
    said = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"linetender {linetender.__version__}\n"


def test_it_runs_a_server(badserver: str, tmp_path: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    done = subprocess.run(
        [COMMAND, "run", "--", badserver],
        input=json.dumps(hello) + "\n",
        env={"XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]
