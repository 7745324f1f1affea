"""An agent on the official Python SDK that goes by a configuration file: calls one server again and again until it is told
to stop, and says how that went."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(config: str, name: str, stop: str) -> None:
    entry = json.load(open(config))["mcpServers"][name]
    env = {**os.environ, **entry.get("env", {})}
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=env)
    seen = {"calls": 0, "answered": 0, "failed": 0, "texts": [], "closed": False}
    quiet = open(os.devnull, "w")
    async with stdio_client(server, errlog=quiet) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        seen["tools"] = len(tools)
        while True:
            seen["calls"] += 1
            message = str(seen["calls"])
            result = await asyncio.wait_for(session.call_tool("echo", {"message": message}), 60)
            text = result.content[0].text
            if getattr(result, "is_error", getattr(result, "isError", False)):
                seen["failed"] += 1
                if text not in seen["texts"]:
                    seen["texts"].append(text)
            else:
                assert text == f"Echo: {message}", text
                seen["answered"] += 1
                if os.path.exists(stop):
                    break
            await asyncio.sleep(0.02)
        assert [tool.name for tool in (await session.list_tools()).tools] == tools
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
