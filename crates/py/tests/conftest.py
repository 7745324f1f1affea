"""What the tests share: the server that misbehaves on purpose, and an event loop per test."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import linetender

#: No test may hang: what waits longer than this has lost something.
LIMIT = 60.0


@pytest.fixture(scope="session")
def badserver() -> str:
    """The binary of linetender's fault server."""
    return os.environ["LINETENDER_BADSERVER"]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Where a server writes down what it ran."""
    return tmp_path / "book"


@pytest.fixture
def webserver(badserver: str, book: Path) -> Iterator[Any]:
    """Starts the fault server over HTTP: what it returns is called with flags."""
    started = []

    def start(*flags: str, port: int = 0) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [badserver, "--http", str(port), "--book", str(book), *flags], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().removeprefix("listening on ").strip()

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests that are coroutine functions run in a loop of their own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}

    async def bounded() -> None:
        await asyncio.wait_for(pyfuncitem.obj(**arguments), LIMIT)

    asyncio.run(bounded())
    return True


def runs(book: Path) -> list[str]:
    """The nonces of what a server ran, in order."""
    words = (line.split() for line in book.read_text().splitlines())
    return [line[1] for line in words if line[0] == "run"]


async def pid_of(line: linetender.Line) -> int:
    """The server's own word: ``Line.pid`` is known a moment later than the handshake at times."""
    return int((await line.call_tool("pid")).text)
