"""One agent on the official Python SDK, of either major version, at a gateway's address: lists, and calls.

    agent.py legacy|modern URL TOOL...
"""

import asyncio
import sys


def fails(result) -> bool:
    return bool(getattr(result, "is_error", getattr(result, "isError", False)))


async def story(agent, wanted: list[str]) -> str:
    tools = [one.name for one in (await agent.list_tools()).tools]
    for tool in wanted:
        assert tool in tools, tools
        result = await agent.call_tool(tool, {"message": "hello"})
        assert not fails(result), result
        assert result.content[0].text == "Echo: hello", result
    return f"{len(tools)} tools, {len(wanted)} called"


async def main(era: str, url: str, wanted: list[str]) -> None:
    try:
        from mcp import Client
    except ImportError:  # 1.x speaks one era only
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        assert era == "legacy"
        async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as agent:
            hello = await agent.initialize()
            print(hello.protocolVersion, await story(agent, wanted), sep=", ")
        return
    async with Client(url, mode="legacy" if era == "legacy" else "auto") as agent:
        version = agent.protocol_version
        assert (version < "2026") == (era == "legacy"), version
        print(version, await story(agent, wanted), sep=", ")


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
