"""NousResearch/hermes-agent#32111: reconnects use up a budget that never refills, and the server is gone for the life of the process.

A server over HTTP is restarted eight times, as by deployments, and serves in between. Each time it is back before Hermes's first
attempt to reconnect. In the report a planned reconnect counted, because a lock of anyio failed while the old connection was closed;
that error does not occur with the versions that pip resolves here, so here it is the lost connection that counts. The budget is the
same, and so is its end.

Hermes has no place for a transport: its config has a command or an address. So the line that changes is that of the config.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from both import Seen, main
from faults import Web

RESTARTS = 8


async def until(true: Callable[[], bool], limit: float) -> bool:
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.02)  # between two looks
    return True


async def ask(server: Any, n: int) -> str:
    """A call, as an agent's. Hermes's session may be gone, or go away under it."""
    try:
        result = await asyncio.wait_for(server.session.call_tool("add", {"a": n, "b": 1}), 10)
        return str(result.content[0].text)
    except Exception as error:
        return f"{type(error).__name__} {error}"


async def replay(kept: bool) -> Seen:
    with tempfile.TemporaryDirectory() as home:
        os.environ["HERMES_HOME"] = os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = home
        from tools.mcp_tool import MCPServerTask

        lost: list[str] = []
        log = logging.getLogger("tools.mcp_tool")

        def keep(record: logging.LogRecord) -> bool:
            if "attempt" in record.msg:
                lost.append(record.getMessage())
            return True

        log.addFilter(keep)
        web = Web()
        server = MCPServerTask("tools")
        if kept:
            config: dict[str, Any] = {"command": os.environ["LINETENDER"], "args": ["run", web.url]}
        else:
            config = {"url": web.url}
        try:
            await server.start(config)
            return await restarts(server, web, lost)
        finally:
            await server.shutdown()
            web.stop()


async def restarts(server: Any, web: Web, lost: list[str]) -> Seen:
    for n in range(1, RESTARTS + 1):
        counted = len(lost)
        web.stop()
        asked = asyncio.ensure_future(ask(server, n))
        # The server is back as soon as Hermes, or the one who asked, has seen that it was away.
        await until(lambda: len(lost) > counted or asked.done(), 15)
        web.start()
        told = ""
        # The waits between Hermes's attempts double up to 16 s.
        end = time.monotonic() + 40
        while told != str(n + 1):
            if server._task.done() or time.monotonic() > end:
                return False, f"restart {n}: {(lost or [told])[-1]}"
            await until(lambda: server.session is not None or server._task.done(), 40)
            told = await ask(server, n)
        asked.cancel()
    return True, f"{RESTARTS} restarts, a call answered after each; attempts that Hermes counted: {len(lost)}"


if __name__ == "__main__":
    main("NousResearch/hermes-agent#32111", "hermes-agent", replay)
