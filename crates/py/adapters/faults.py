"""What every adapter is put through: kill -9, a hang, and a restart over HTTP, with the framework as it is and with linetender.

An adapter calls :func:`main` with two functions that open the framework's client: ``bare`` as the framework does it, ``kept`` with
linetender. Each case runs in a process of its own, because a client whose server died may not be able to end. The rows of a
Markdown table go to stdout; the exit code is 1 if a framework with linetender does not get its tools back.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mcp

import linetender

SERVER = str(Path(__file__).with_name("server.py"))

#: How long a client may take to get an answer from a living server again.
LIMIT = 25.0
#: What ends a case that hangs: the limit, and time to start and to stop.
CASE = LIMIT + 50.0

FAULTS = {"kill": "kill -9", "hang": "SIGSTOP", "restart": "restart over HTTP"}

#: Seconds that a call may take. A hang shows as silence, so both sides have to be told, in whatever way the framework has for it.
CALL = 3
#: The same for linetender, whose defaults are minutes.
PATIENCE = f'call_timeout = "{CALL}s"\nabandoned_after = "11s"\n'


@dataclass
class Tools:
    """A framework's view of a server."""

    #: Its tools' names.
    names: Callable[[], Awaitable[list[str]]]
    #: The text that a tool answers. A tool error is an exception.
    call: Callable[[str, dict[str, Any]], Awaitable[str]]


#: Opens a client for ``parameters`` (stdio) or an address. What linetender gets may be a server with a policy.
Open = Callable[[Any], AbstractAsyncContextManager[Tools]]


class Web:
    """A server at an address that stays the same."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.start()

    def start(self) -> None:
        """Starts it, and returns when it takes connections."""
        self.process = process = subprocess.Popen([sys.executable, SERVER, str(self.port)], stderr=subprocess.DEVNULL)
        told(pid=process.pid)
        until = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    process.kill()
                    process.wait()
                    raise
                time.sleep(0.02)  # between two looks

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def told(**what: Any) -> None:
    """For the process that runs the cases."""
    print(json.dumps(what), flush=True)


async def answered_by(tools: Tools) -> int:
    pid = int(await tools.call("pid", {}))
    told(pid=pid)
    return pid


def words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if len(text) > 120:
        text = text[:120].rsplit(" ", 1)[0] + " …"
    return f"{type(error).__name__}: {text}" if text else f"{type(error).__name__} with an empty message"


async def back(tools: Tools, was: int) -> None:
    """Calls until another process answers, as an agent does that still needs the tool; then looks at the list."""
    began, failed, first = time.monotonic(), 0, ""
    while (left := began + LIMIT - time.monotonic()) > 0:
        try:
            pid = await asyncio.wait_for(answered_by(tools), left)
            if pid != was:
                if sorted(await asyncio.wait_for(tools.names(), 10)) != ["add", "pid"]:
                    told(ok=False, text="another list of tools")
                elif await asyncio.wait_for(tools.call("add", {"a": 2, "b": 3}), 10) != "5":
                    told(ok=False, text="a wrong answer")
                else:
                    told(ok=True, after=time.monotonic() - began, failed=failed, first=first)
                return
        except asyncio.TimeoutError:
            failed, first = failed + 1, first or "no answer and no error"
        except Exception as error:
            failed, first = failed + 1, first or words(error)
            await asyncio.sleep(0.1)  # between two looks
    told(ok=False, text=f"no tools in {LIMIT:.0f} s; calls that failed: {failed}; first: {first}")


async def case(fault: str, opened: Open, is_kept: bool) -> None:
    web = Web() if fault == "restart" else None
    try:
        target: Any = mcp.StdioServerParameters(command=sys.executable, args=[SERVER])
        if web is not None:
            target = web.url
        elif fault == "hang" and is_kept:
            with tempfile.TemporaryDirectory() as folder:
                config = Path(folder, "linetender.toml")
                argv = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(SERVER)}]\n"
                config.write_text(f"[servers.tools]\n{argv}{PATIENCE}")
                target = linetender.Server.from_config(config, "tools")
        async with opened(target) as tools:
            was = await answered_by(tools)
            assert sorted(await tools.names()) == ["add", "pid"]
            if web is not None:
                web.restart()
            else:
                os.kill(was, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
            await back(tools, was)
    finally:
        if web is not None:
            web.stop()


def gone(pid: int) -> bool:
    """Whether a process has ended. A zombie has: it is for its parent to look at."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def in_a_process(*arguments: str) -> tuple[dict[str, Any] | None, str, str]:
    """Runs this program with arguments: its result, what is to be said about its end, and its stderr. Leaves no process behind."""
    argv = [sys.executable, sys.argv[0], *arguments]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = ""
    try:
        output, errors = process.communicate(timeout=CASE)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        ended = "; the program could not end"
    said = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if process.returncode and not ended:
        named = re.findall(r"^[ |]*([\w.]*(?:Error|Group|Exception)\b.*)", errors, re.M) or ["no word"]
        ended = f"; the program ended with {named[-1][:100]}"
    until = time.monotonic() + 5
    pids = {line["pid"] for line in said if "pid" in line}
    while (left := [pid for pid in pids if not gone(pid)]) and time.monotonic() < until:
        time.sleep(0.05)  # between two looks
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left:
        ended += "; left the server running"
    return next((line for line in said if "ok" in line), None), ended, errors


def run(fault: str, mode: str) -> tuple[bool, str]:
    """Runs a case. Whether the tools came back and nothing was left behind, and that in words."""
    result, ended, errors = in_a_process(fault, mode)
    if ended and mode == "kept":
        sys.stderr.write(errors)
    if result is None:
        return False, ended.removeprefix("; ")
    if not result["ok"]:
        return False, result["text"] + ended
    text = f"back after {result['after']:.1f} s"
    if result["failed"]:
        text += f"; calls that failed: {result['failed']}; first: {result['first']}"
    return not ended, text + ended


def row(*cells: str) -> None:
    print("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |", flush=True)


def main(framework: str, package: str, bare: Open, kept: Open) -> None:
    if len(sys.argv) == 3:
        fault, mode = sys.argv[1:]
        asyncio.run(case(fault, kept if mode == "kept" else bare, mode == "kept"))
        return
    fine = True
    for fault, title in FAULTS.items():
        # Side by side: most of it is waiting.
        with ThreadPoolExecutor() as pool:
            (_, without), (good, with_it) = pool.map(run, (fault, fault), ("bare", "kept"))
        fine = fine and good
        row(framework, version(package), title, without, ("" if good else "FAILED: ") + with_it)
    sys.exit(0 if fine else 1)
