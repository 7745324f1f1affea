"""One agent on the official Python SDK, of either major version: lists, calls, kills its server, and calls on.

    agent.py legacy|modern TOOL ARGUMENTS COMMAND...
"""

import asyncio
import json
import os
import signal
import subprocess
import sys

from mcp import StdioServerParameters


def leaves() -> list[int]:
    """The processes at the ends of the tree below this one: the servers themselves."""
    found = []

    def below(pid: int) -> list[int]:
        listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
        return [child for child in map(int, listed.split()) if os.path.exists(f"/proc/{child}")]

    queue = below(os.getpid())
    while queue:
        pid = queue.pop()
        children = below(pid)
        queue += children
        if not children:
            found.append(pid)
    return found


def fails(result) -> bool:
    return bool(getattr(result, "is_error", getattr(result, "isError", False)))


async def story(agent, tool: str, arguments: dict) -> str:
    tools = [one.name for one in (await agent.list_tools()).tools]
    assert tool in tools, tools
    first = await agent.call_tool(tool, arguments)
    assert not fails(first), first
    for pid in leaves():
        os.kill(pid, signal.SIGKILL)
    answered = failed = 0
    while not answered:
        # What was under way when the server died may fail, with a reason; then it is back.
        again = await agent.call_tool(tool, arguments)
        failed += fails(again)
        answered += not fails(again)
        assert failed < 3, again
    assert again.content[0].text == first.content[0].text, again
    assert [one.name for one in (await agent.list_tools()).tools] == tools
    return f"{len(tools)} tools, killed once, {failed} failed with a reason"


async def main(era: str, tool: str, arguments: str, command: list[str]) -> None:
    params = StdioServerParameters(command=command[0], args=command[1:])
    try:
        from mcp import Client
    except ImportError:  # 1.x speaks one era only
        from mcp import ClientSession
        from mcp.client.stdio import stdio_client

        assert era == "legacy"
        async with stdio_client(params) as pipes, ClientSession(*pipes) as agent:
            hello = await agent.initialize()
            print(hello.protocolVersion, await story(agent, tool, json.loads(arguments)), sep=", ")
        return
    async with Client(params, mode="legacy" if era == "legacy" else "auto") as agent:
        version = agent.protocol_version
        assert (version < "2026") == (era == "legacy"), version
        print(version, await story(agent, tool, json.loads(arguments)), sep=", ")


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
