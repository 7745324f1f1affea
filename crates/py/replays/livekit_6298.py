"""livekit/agents#6298: a server's death is never noticed; ``initialized`` stays true and every later call fails.

An agent has a toolset with a server over stdio. The server is killed, and the agent goes on: five more calls.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import mcp
from both import Seen, buried, main
from faults import SERVER, told
from livekit.agents.llm import mcp as livekit
from livekit_agents import KeptServer


async def replay(kept: bool) -> Seen:
    server: Any
    if kept:
        server = KeptServer(mcp.StdioServerParameters(command=sys.executable, args=[SERVER]))
    else:
        server = livekit.MCPServerStdio(sys.executable, [SERVER])
    await server.initialize()
    tools = {tool.info.name: tool for tool in await server.list_tools()}
    pid = int("".join(filter(str.isdigit, await tools["pid"](raw_arguments={}))))
    told(pid=pid)
    os.kill(pid, signal.SIGKILL)
    await buried(pid)

    heard = []
    for n in range(5):
        try:
            heard.append(await asyncio.wait_for(tools["add"](raw_arguments={"a": n, "b": 1}), 20))
        except Exception as error:
            heard.append(f"{type(error).__name__} {str(error)!r}")
    answered = sum('"text"' in text for text in heard)
    seen = f"initialized is {server.initialized}, {answered} of 5 calls answered; the last: {heard[-1]}"
    try:
        await asyncio.wait_for(server.aclose(), 20)
    except Exception as error:
        seen += f"; closing: {type(error).__name__}"
    # The dying server may have read the first of them. It is not repeated then, and says so.
    return answered >= 4, seen


if __name__ == "__main__":
    main("livekit/agents#6298", "livekit-agents", replay)
