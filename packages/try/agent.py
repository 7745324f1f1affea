"""An agent, as small as one can be: the official SDK, and the servers of a configuration.

`agent.py CONFIG`: starts every server as its entry says, calls a tool of each, kills each server with SIGKILL, and calls again on
the same session.
"""

import asyncio
import json
import os
import signal
import sys

import mcp
from mcp.client.stdio import stdio_client

CALLS = {
    "everything": ("echo", {"message": "hello"}),
    "memory": ("read_graph", {}),
    "time": ("get_current_time", {"timezone": "UTC"}),
}


def server_pid():
    """The process at the end of what this one started: the server itself, behind linetender and the runners of both."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                children.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(pid))
        except OSError:
            pass  # it has ended
    pid = os.getpid()
    while pid in children:
        pid = max(children[pid])
    return pid


async def try_one(name, entry):
    parameters = mcp.StdioServerParameters(command=entry["command"], args=entry["args"], env=dict(os.environ))
    async with stdio_client(parameters, errlog=open(os.devnull, "w")) as (read, write), mcp.ClientSession(read, write) as client:
        await client.initialize()
        tools = len((await client.list_tools()).tools)
        tool, arguments = CALLS[name]
        before = await client.call_tool(tool, arguments)
        pid = server_pid()
        os.kill(pid, signal.SIGKILL)
        after = await client.call_tool(tool, arguments)
        for _ in range(3):
            if not after.is_error:
                break
            # It may have run, or what the server kept in memory is gone: that is said, and the agent decides.
            print(f"{name}: {after.content[0].text}")
            await asyncio.sleep(1.2)
            after = await client.call_tool(tool, arguments)
        now = server_pid()
        assert not before.is_error and not after.is_error and now != pid, (before, after, pid, now)
        print(f"{name}: {tools} tools, {tool} answered; killed its process; {tool} answered on the same connection")


async def main(path):
    with open(path) as file:
        servers = json.load(file)["mcpServers"]
    for name, entry in servers.items():
        await asyncio.wait_for(try_one(name, entry), 120)


asyncio.run(main(*sys.argv[1:]))
