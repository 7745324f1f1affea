"""The examples, as their reader would run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import mcp

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

assert mcp  # the package that the examples are for


def example(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(EXAMPLES / name), *args]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)


def test_calls(badserver: str) -> None:
    said = example("calls.py", badserver).stdout.splitlines()
    assert said[0].endswith(" tools") and sum(line.startswith("call ") for line in said) == 6, said
    assert re.fullmatch(r"generation [23]", said[-1]), said


def test_sdk(badserver: str) -> None:
    assert "hello" in example("sdk.py", badserver).stdout


def test_watch(badserver: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"one": {"command": badserver}}}))
    program = [sys.executable, str(EXAMPLES / "watch.py"), str(path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        said = next((line for line in process.stdout if line.strip() == "one: up"), None)
        watchdog.cancel()
        process.kill()
    assert said, "it never came up"


def test_what_the_readme_says_is_python() -> None:
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S):
        compile("async def example():\n" + "\n".join("    " + line for line in block.splitlines()), "README.md", "exec")
