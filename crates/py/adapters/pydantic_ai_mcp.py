"""Pydantic AI: its ``MCPToolset`` takes a transport of FastMCP, and this one's streams are linetender's. It fits ``fastmcp.Client`` too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp.client.transports import ClientTransport, StdioTransport
from fastmcp.client.transports.base import TransportOptions
from faults import CALL, Tools, main
from mcp import ClientSession
from pydantic_ai.mcp import MCPToolset

import linetender


class KeptTransport(ClientTransport):
    """Takes what ``linetender.session`` takes: parameters, a command, an address, a ``Server`` or a ``Line``."""

    def __init__(self, target: Any) -> None:
        self._target = target

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **options: Any
    ) -> AsyncIterator[ClientSession]:
        session_class = (transport_options or TransportOptions()).session_class
        async with linetender.session(self._target) as (read, write), session_class(read, write, **options) as session:
            yield session


@asynccontextmanager
async def opened(toolset: MCPToolset[Any]) -> AsyncIterator[Tools]:
    async def names() -> list[str]:
        return [tool.name for tool in await toolset.list_tools()]

    async def call(name: str, arguments: dict[str, Any]) -> str:
        return str(await toolset.direct_call_tool(name, arguments))

    async with toolset:
        yield Tools(names, call)


def bare(target: Any) -> Any:
    if isinstance(target, str):
        return opened(MCPToolset(target, read_timeout=CALL))
    return opened(MCPToolset(StdioTransport(target.command, target.args), read_timeout=CALL))


def kept(target: Any) -> Any:
    return opened(MCPToolset(KeptTransport(target)))


if __name__ == "__main__":
    main("Pydantic AI", "pydantic-ai-slim", bare, kept)
