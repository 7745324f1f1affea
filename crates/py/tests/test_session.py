"""A session of the official SDK."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest
from conftest import pid_of, runs

import linetender
from linetender._sdk import codec


async def talk(badserver: str, book: Path) -> None:
    """Kills the server between and under calls: the client lives on."""
    server = linetender.Server.stdio(badserver, ["--book", str(book)]).with_settings(state="none")
    async with linetender.session(server) as (read, write):
        async with mcp.ClientSession(read, write) as client:
            await client.initialize()
            assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
            answered = []
            for n in range(3):
                pid = int((await client.call_tool("pid", {})).content[0].text)
                os.kill(pid, signal.SIGKILL)
                # The dying server may have read it; then it is not repeated.
                result = await client.call_tool("echo", {"nonce": f"between-{n}"})
                if "unknown whether" not in result.content[0].text:
                    answered.append(f"between-{n}")
            told = await client.call_tool("kill", {"nonce": "under"})
            assert "unknown whether the call was executed" in told.content[0].text
            assert (await client.call_tool("echo", {"nonce": "after"})).content
    assert runs(book).count("under") <= 1
    assert all(runs(book).count(nonce) == 1 for nonce in answered)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_client_outlives_its_server(backend: str, badserver: str, book: Path) -> None:
    anyio.run(talk, badserver, book, backend=backend)


async def test_over_http(webserver: Any) -> None:
    process, url = webserver()
    async with linetender.session(url) as (read, write):
        async with mcp.ClientSession(read, write) as client:
            await client.initialize()
            assert (await client.call_tool("echo", {"a": 1})).content
            process.kill()
            process.wait()
            webserver(port=int(url.split(":")[2].split("/")[0]))
            assert (await client.call_tool("echo", {"a": 2})).content


async def test_many_calls_at_once(badserver: str) -> None:
    async with linetender.session(badserver) as (read, write):
        async with mcp.ClientSession(read, write) as client:
            await client.initialize()
            told = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(200)))
            assert len(told) == 200 and all(result.content for result in told)


async def test_several_sessions_share_a_line(badserver: str) -> None:
    async with linetender.Line.stdio(badserver) as line:
        pid = await pid_of(line)
        for _ in range(2):
            async with linetender.session(line) as (read, write), mcp.ClientSession(read, write) as client:
                await client.initialize()
                assert (await client.call_tool("pid", {})).content[0].text == str(pid)
        assert line.state == "up"


async def test_it_may_be_left_in_another_task_than_it_was_entered(badserver: str) -> None:
    session = linetender.session(badserver)
    read, write = await asyncio.ensure_future(session.__aenter__())
    async with mcp.ClientSession(read, write) as client:
        await client.initialize()
        pid = int((await client.call_tool("pid", {})).content[0].text)
    await asyncio.ensure_future(session.__aexit__(None, None, None))
    assert not Path(f"/proc/{pid}").exists()


async def test_it_ends_although_nobody_reads_and_much_is_said(badserver: str) -> None:
    async with linetender.session(badserver) as (read, write):
        client = mcp.ClientSession(read, write)
        async with client:
            await client.initialize()
            calls = [asyncio.ensure_future(client.call_tool("sleep", {"ms": 20})) for _ in range(50)]
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def test_an_answer_that_the_sdk_cannot_read_is_an_error_and_not_silence() -> None:
    message, refusal = codec().read(b'{"jsonrpc":"2.0","id":7,"error":{"code":"a word","message":"no"}}', "clock")
    assert refusal is None
    spelt = codec().write(message)
    assert b'"id":7' in spelt and b"clock: the MCP SDK cannot parse" in spelt
    message, refusal = codec().read(b'{"jsonrpc":"2.0","id":8,"method":7}', "clock")
    assert message is None and refusal is not None and b'"id": 8' in refusal
    assert codec().read(b"no JSON", "clock") == (None, None)


@pytest.mark.skipif(not hasattr(mcp, "Client"), reason="version 1 of the SDK has no Client")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_client_of_version_2_takes_it_as_its_transport(backend: str, badserver: str) -> None:
    async def talk() -> None:
        async with mcp.Client(linetender.session(badserver)) as client:
            pid = int((await client.call_tool("pid", {})).content[0].text)
            os.kill(pid, signal.SIGKILL)
            # The dying server may have read the first of these.
            told = [(await client.call_tool("echo", {"n": n})).content[0].text for n in range(2)]
            assert '"n":1' in told[1]

    anyio.run(talk, backend=backend)


async def test_the_servers_questions_and_progress_reach_the_client(badserver: str) -> None:
    async def roots(context: Any) -> Any:
        return mcp.types.ListRootsResult(roots=[mcp.types.Root(uri="file:///srv/here")])  # type: ignore[arg-type]

    heard: list[float] = []
    all_heard = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)
        if len(heard) == 3:
            all_heard.set()

    async with linetender.session(badserver, ["--era", "legacy"]) as (read, write):
        async with mcp.ClientSession(read, write, list_roots_callback=roots) as client:
            await client.initialize()
            assert "/srv/here" in (await client.call_tool("question", {})).content[0].text
            await client.call_tool("progress", {"times": 3, "ms": 1}, progress_callback=progress)
            await all_heard.wait()
