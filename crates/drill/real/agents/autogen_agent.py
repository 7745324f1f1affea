"""AutoGen's assistant, with its MCP workbench."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

ABILITIES = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}


async def main(url: str, command: list[str]) -> None:
    model = OpenAIChatCompletionClient(model="scripted", base_url=url + "/v1", api_key="none", model_info=ABILITIES)
    async with McpWorkbench(StdioServerParams(command=command[0], args=command[1:], read_timeout_seconds=30)) as tools:
        agent = AssistantAgent("tried", model, workbench=tools, max_tool_iterations=5)
        print((await agent.run(task="Use the tools.")).messages[-1].content)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
