"""LiveKit Agents: an ``MCPServer`` whose streams are linetender's. Give it to an agent's ``MCPToolset`` in place of ``MCPServerStdio``
or ``MCPServerHTTP``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from faults import CALL, Tools, main
from livekit.agents.llm import mcp as livekit

import linetender


class KeptServer(livekit.MCPServer):
    """Takes what ``linetender.session`` takes: parameters, a command, an address, a ``Server`` or a ``Line``."""

    def __init__(self, target: Any, *, client_session_timeout_seconds: float = 60, **options: Any) -> None:
        super().__init__(client_session_timeout_seconds=client_session_timeout_seconds, **options)
        self._target = target

    def client_streams(self) -> Any:
        return linetender.session(self._target)


@asynccontextmanager
async def opened(server: livekit.MCPServer) -> AsyncIterator[Tools]:
    toolset = await livekit.MCPToolset(id="tools", mcp_server=server).setup()

    async def names() -> list[str]:
        await toolset.setup(reload=True)
        return [tool.info.name for tool in toolset.tools]

    async def call(name: str, arguments: dict[str, Any]) -> str:
        tool = next(tool for tool in toolset.tools if tool.info.name == name)
        return str(json.loads(await tool(raw_arguments=arguments))["text"])

    try:
        yield Tools(names, call)
    finally:
        await toolset.aclose()


def bare(target: Any) -> Any:
    if isinstance(target, str):
        return opened(livekit.MCPServerHTTP(target, client_session_timeout_seconds=CALL))
    return opened(livekit.MCPServerStdio(target.command, target.args, client_session_timeout_seconds=CALL))


def kept(target: Any) -> Any:
    return opened(KeptServer(target))


if __name__ == "__main__":
    main("LiveKit Agents", "livekit-agents", bare, kept)
