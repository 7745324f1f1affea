"""LangChain MCP adapters: ``load_mcp_tools`` takes a session of the official SDK, and linetender carries that.

The tools live as long as the session. ``MultiServerMCPClient.get_tools()`` starts a server for every call instead: it has no
connection to keep, pays for a start each time, and a server that keeps something between two calls loses it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from faults import CALL, Tools, main
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession

import linetender


@asynccontextmanager
async def kept_session(target: Any) -> AsyncIterator[ClientSession]:
    """Takes what ``linetender.session`` takes: parameters, a command, an address, a ``Server`` or a ``Line``."""
    async with linetender.session(target) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def opened(session: Any) -> AsyncIterator[Tools]:
    async with session as client:
        tools: list[BaseTool] = await load_mcp_tools(client)

        async def names() -> list[str]:
            return [tool.name for tool in await load_mcp_tools(client)]

        async def call(name: str, arguments: dict[str, Any]) -> str:
            tool = next(tool for tool in tools if tool.name == name)
            # As a model's call: a tool error becomes a message with this status.
            call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
            message = await tool.ainvoke(call)
            if message.status == "error":
                raise RuntimeError(message.text)
            return str(message.text)

        yield Tools(names, call)


def bare(target: Any) -> Any:
    if isinstance(target, str):
        connection: Any = {"transport": "streamable_http", "url": target}
    else:
        connection = {"transport": "stdio", "command": target.command, "args": target.args}
    connection["session_kwargs"] = {"read_timeout_seconds": timedelta(seconds=CALL)}
    return opened(MultiServerMCPClient({"tools": connection}).session("tools"))


def kept(target: Any) -> Any:
    return opened(kept_session(target))


if __name__ == "__main__":
    main("LangChain MCP adapters", "langchain-mcp-adapters", bare, kept)
