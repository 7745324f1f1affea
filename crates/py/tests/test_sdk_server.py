"""Servers made with the official SDK."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import mcp

import linetender

SERVER = [str(Path(__file__).with_name("sdk_server.py"))]


async def test_a_line_to_an_sdk_server() -> None:
    server = linetender.Server.stdio(sys.executable, SERVER, name="sdk").with_settings(state="none", wait=60.0)
    async with linetender.Line(server) as line:
        assert {tool["name"] for tool in await line.list_tools()} == {"add", "pid", "fail"}
        assert (await line.call_tool("add", {"a": 2, "b": 3})).structured == {"result": 5}
        failed = await line.call_tool("fail")
        assert failed.is_error and "fail" in failed.text
        assert (await line.read_resource("note://today")).result["contents"][0]["text"] == "sunny"
        told = await line.get_prompt("greet", {"name": "Ada"})
        assert told.result["messages"][0]["content"]["text"] == "Greet Ada."
        events = line.events()
        os.kill(int((await line.call_tool("pid")).text), signal.SIGKILL)
        await anext(events)
        assert (await line.call_tool("add", {"a": 1, "b": 1})).text == "2"
        assert line.status.generation == 2


async def test_a_session_with_an_sdk_server() -> None:
    server = linetender.Server.stdio(sys.executable, SERVER).with_settings(state="none", wait=60.0)
    async with linetender.session(server) as (read, write), mcp.ClientSession(read, write) as client:
        await client.initialize()
        for n in range(2):
            result = await client.call_tool("add", {"a": n, "b": 1})
            assert result.content[0].text == str(n + 1)
        os.kill(int((await client.call_tool("pid", {})).content[0].text), signal.SIGKILL)
        # The dying server may have read the first of these.
        told = [(await client.call_tool("add", {"a": 5, "b": 5})).content[0].text for _ in range(2)]
        assert told[0] == "10" or "unknown whether" in told[0]
        assert told[1] == "10"
