"""LangChain's agent on LangGraph, with the MCP adapters, on one session as their guide has it for stateful servers."""

import asyncio
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


async def main(url: str, command: list[str]) -> None:
    server = {"transport": "stdio", "command": command[0], "args": command[1:]}
    model = ChatOpenAI(model="scripted", base_url=url + "/v1", api_key="none")
    async with MultiServerMCPClient({"bad": server}).session("bad") as session:
        agent = create_agent(model, await load_mcp_tools(session))
        said = await agent.ainvoke({"messages": [("user", "Use the tools.")]})
        print(said["messages"][-1].content)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
