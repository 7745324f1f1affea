"""An agent on the official Python SDK: calls through linetender while its server is killed, again and again."""

import asyncio
import os
import signal
import subprocess
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def node_processes() -> list[int]:
    """The node process at the end of each tree below this one."""
    found, queue = [], [os.getpid()]
    while queue:
        listed = subprocess.run(["pgrep", "-P", str(queue.pop())], capture_output=True, text=True).stdout
        for pid in map(int, listed.split()):
            queue.append(pid)
            try:
                words = open(f"/proc/{pid}/cmdline").read()
            except OSError:
                continue
            if "server-everything" in words and words.startswith("node"):
                found.append(pid)
    return found


async def main(command: list[str]) -> None:
    answered = failed = 0
    async with stdio_client(StdioServerParameters(command=command[0], args=command[1:])) as pipes:
        async with ClientSession(*pipes) as session:
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            for kill in range(10):
                for call in range(15):
                    result = await session.call_tool("echo", {"message": f"{kill}-{call}"})
                    text = result.content[0].text
                    error = getattr(result, "is_error", getattr(result, "isError", False))
                    assert error or text == f"Echo: {kill}-{call}", text
                    answered, failed = answered + (not error), failed + bool(error)
                    if error:
                        print("a model reads:", text)
                for pid in node_processes():
                    os.kill(pid, signal.SIGKILL)
            await session.call_tool("echo", {"message": "still here"})
            assert [tool.name for tool in (await session.list_tools()).tools] == tools
    print(f"python sdk: 10 kills, {answered} answered, {failed} failed with a reason, connection never closed")


asyncio.run(main(sys.argv[1:]))
