"""NVIDIA/NeMo-Agent-Toolkit#1935: the request that sees a death closes a transport that another task opened.

A workflow has a client for a server over stdio. The server is killed, and requests go on, each in a task of its own as in a web
server: five calls. Then the workflow, which opened the client, closes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Any

import mcp
from both import Seen, buried, main
from faults import SERVER, told, words
from nat.plugins.mcp.client.client_base import MCPStdioClient
from nemo_agent_toolkit import KeptClient

FAILED = "MCPToolClient tool call failed: "


class Scopes(logging.Handler):
    """Counts the reports of a cancel scope that was left in another task."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "cancel scope in a different task" in logging.Formatter().format(record)


async def replay(kept: bool) -> Seen:
    scopes = Scopes()
    logging.getLogger().addHandler(scopes)
    client: Any
    if kept:
        client = KeptClient(mcp.StdioServerParameters(command=sys.executable, args=[SERVER]))
    else:
        client = MCPStdioClient(sys.executable, [SERVER])
    heard: list[str] = []
    opened, over = asyncio.Event(), asyncio.Event()

    async def workflow() -> None:
        async with client:
            opened.set()
            await over.wait()

    async def request(tool: str, **arguments: int) -> str:
        return str(await (await client.get_tool(tool)).acall(arguments))

    async def told_of(task: asyncio.Task[Any]) -> str:
        done, _ = await asyncio.wait([task], timeout=8)
        if not done:
            task.cancel()
            return "no answer and no error"
        if task.cancelled():
            return "cancelled"
        error: Any = task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return words(error) if error else str(task.result()).removeprefix(FAILED)

    owner = asyncio.ensure_future(workflow())
    await opened.wait()
    pid = int(await request("pid"))
    told(pid=pid)
    os.kill(pid, signal.SIGKILL)
    await buried(pid)
    for n in range(5):
        heard.append(await told_of(asyncio.ensure_future(request("add", a=n, b=1))))
    over.set()
    left = await told_of(owner)
    answered = sum(text == str(n + 1) for n, text in enumerate(heard))
    seen = f"{answered} of 5 calls answered"
    failures = [text for n, text in enumerate(heard) if text != str(n + 1)]
    if failures:
        seen += f"; first failure: {failures[0]}; last: {failures[-1]}"
    if left == "cancelled":
        seen += "; the workflow, which had opened the client, was cancelled"
    else:
        seen += f"; closing: {left}" if left != "None" else "; closed well"
    if scopes.count:
        seen += f"; logged: Attempted to exit cancel scope in a different task than it was entered in"
    # The dying server may have read the first of them. It is not repeated then, and says so.
    return answered >= 4 and left == "None" and not scopes.count, seen


if __name__ == "__main__":
    main("NVIDIA/NeMo-Agent-Toolkit#1935", "nvidia-nat-mcp", replay)
