"""Google's Agent Development Kit, with its MCP toolset."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters


async def main(url: str, command: list[str]) -> None:
    os.environ.update(GOOGLE_GEMINI_BASE_URL=url, GOOGLE_API_KEY="none")
    server = StdioServerParameters(command=command[0], args=command[1:])
    tools = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=30))
    runner = InMemoryRunner(LlmAgent(name="tried", model="gemini-2.5-flash", tools=[tools]), app_name="tried")
    session = await runner.session_service.create_session(app_name="tried", user_id="user")
    asked = types.Content(role="user", parts=[types.Part(text="Use the tools.")])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=asked):
        for part in (event.content and event.content.parts) or []:
            if part.text:
                print(part.text)
    await runner.close()


asyncio.run(main(sys.argv[1], sys.argv[2:]))
