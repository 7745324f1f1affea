"""OpenAI's Agents SDK, with its own MCP client."""

import asyncio
import sys

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI


async def main(url: str, command: list[str]) -> None:
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=url + "/v1", api_key="none"))
    async with MCPServerStdio({"command": command[0], "args": command[1:]}, client_session_timeout_seconds=30) as server:
        agent = Agent("tried", model=model, mcp_servers=[server])
        print((await Runner.run(agent, "Use the tools.")).final_output)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
