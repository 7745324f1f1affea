"""NeMo Agent Toolkit: an ``MCPBaseClient`` whose session is carried by linetender.

Its own reconnect is off: it repeats a call that failed, also one that ran. In a workflow file there is no place for a class; there
the command is the seam: ``command: linetender``, ``args: [run, --, …]``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from faults import CALL, Tools, main
from mcp import ClientSession
from nat.plugins.mcp.client.client_base import MCPBaseClient, MCPStdioClient, MCPStreamableHTTPClient

import linetender


class KeptClient(MCPBaseClient):
    """Takes what ``linetender.session`` takes: parameters, a command, an address, a ``Server`` or a ``Line``."""

    def __init__(self, target: Any, **options: Any) -> None:
        super().__init__("stdio", reconnect_enabled=False, **options)
        self._target = target

    @asynccontextmanager
    async def connect_to_server(self) -> AsyncIterator[ClientSession]:
        async with linetender.session(self._target) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield session


@asynccontextmanager
async def opened(client: MCPBaseClient) -> AsyncIterator[Tools]:
    async def names() -> list[str]:
        return list(await client.get_tools())

    async def call(name: str, arguments: dict[str, Any]) -> str:
        tool = await client.get_tool(name)
        text: str = await tool.acall(arguments)
        # A failed call is a text like any other for the model.
        if text.startswith("MCPToolClient tool call failed: "):
            raise RuntimeError(text.removeprefix("MCPToolClient tool call failed: "))
        return text

    async with client:
        yield Tools(names, call)


def bare(target: Any) -> Any:
    if isinstance(target, str):
        return opened(MCPStreamableHTTPClient(target, tool_call_timeout=timedelta(seconds=CALL)))
    return opened(MCPStdioClient(target.command, target.args, tool_call_timeout=timedelta(seconds=CALL)))


def kept(target: Any) -> Any:
    return opened(KeptClient(target))


if __name__ == "__main__":
    main("NeMo Agent Toolkit", "nvidia-nat-mcp", bare, kept)
