"""An agent that holds the official SDK, with one line changed: its session outlives its server.

python sdk.py COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import asyncio
import sys

import mcp

import linetender


async def main(command: str, *args: str) -> None:
    parameters = mcp.StdioServerParameters(command=command, args=list(args))
    async with linetender.session(parameters) as (read, write):  # was: stdio_client(parameters)
        async with mcp.ClientSession(read, write) as client:
            await client.initialize()
            for tool in (await client.list_tools()).tools[:3]:
                print(tool.name)
            result = await client.call_tool("echo", {"message": "hello"})
            for item in result.content:
                if item.type == "text":
                    print(item.text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
