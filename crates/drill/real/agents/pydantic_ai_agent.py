"""Pydantic AI, with its MCP toolset."""

import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url: str, command: list[str]) -> None:
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url + "/v1", api_key="none"))
    tools = MCPToolset(StdioTransport(command[0], command[1:]))
    async with Agent(model, toolsets=[tools]) as agent:
        print((await agent.run("Use the tools.")).output)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
