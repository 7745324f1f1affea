"""One agent on the official Python SDK, of either major version, at addresses of a gateway: lists, and calls.

    agent.py legacy|modern URL=TOOL,TOOL...
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


async def visit(era: str, url: str, wanted: list[str]) -> str:
    try:
        from mcp import Client
    except ImportError:  # 1.x speaks one era only
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        assert era == "legacy"
        async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as agent:
            hello = await agent.initialize()
            return f"{hello.protocolVersion}, {await story(agent, wanted)}"
    async with Client(url, mode="legacy" if era == "legacy" else "auto") as agent:
        version = agent.protocol_version
        assert (version < "2026") == (era == "legacy"), version
        return f"{version}, {await story(agent, wanted)}"


async def main(era: str, places: list[str]) -> None:
    for place in places:
        url, tools = place.split("=")
        print(url, await visit(era, url, tools.split(",")), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
