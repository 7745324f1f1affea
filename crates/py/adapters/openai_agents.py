"""OpenAI Agents SDK: an ``MCPServerStdio`` whose streams are linetender's. Give it to ``Agent(mcp_servers=[…])``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp
from faults import CALL, Tools, main

import linetender


class KeptServer(MCPServerStdio):
    """Takes what ``linetender.session`` takes: parameters, a command, an address, a ``Server`` or a ``Line``."""

    def __init__(self, target: Any, *, client_session_timeout_seconds: float = 60, **options: Any) -> None:
        # The parameters are not used: `create_streams` is all that looks at them.
        super().__init__({"command": ""}, client_session_timeout_seconds=client_session_timeout_seconds, **options)
        self._target = target

    def create_streams(self) -> Any:
        return linetender.session(self._target)


@asynccontextmanager
async def opened(server: MCPServer) -> AsyncIterator[Tools]:
    async def names() -> list[str]:
        return [tool.name for tool in await server.list_tools()]

    async def call(name: str, arguments: dict[str, Any]) -> str:
        result = await server.call_tool(name, arguments)
        text = str(result.content[0].text)
        if getattr(result, "is_error", None) or getattr(result, "isError", None):
            raise RuntimeError(text)
        return text

    async with server:
        yield Tools(names, call)


def bare(target: Any) -> Any:
    if isinstance(target, str):
        return opened(MCPServerStreamableHttp({"url": target}, client_session_timeout_seconds=CALL))
    parameters: Any = {"command": target.command, "args": target.args}
    return opened(MCPServerStdio(parameters, client_session_timeout_seconds=CALL))


def kept(target: Any) -> Any:
    return opened(KeptServer(target, name="tools"))


if __name__ == "__main__":
    main("OpenAI Agents SDK", "openai-agents", bare, kept)
