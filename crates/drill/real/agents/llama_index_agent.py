"""LlamaIndex's function agent, with its MCP tools."""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, aget_tools_from_mcp_url


async def main(url: str, command: list[str]) -> None:
    client = BasicMCPClient(command[0], args=command[1:])
    tools = await aget_tools_from_mcp_url("", client=client)
    model = OpenAILike("scripted", api_base=url + "/v1", api_key="none", is_chat_model=True, is_function_calling_model=True)
    print(await FunctionAgent(tools=tools, llm=model).run("Use the tools."))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
