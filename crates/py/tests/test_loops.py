"""Event loops, threads and cancellation."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
import uvloop
from conftest import LIMIT, pid_of, runs

import linetender
from linetender import Line


def test_uvloop(badserver: str) -> None:
    async def main() -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
        async with Line.stdio(badserver) as line:
            told = await asyncio.gather(*(line.call_tool("echo", {"n": n}) for n in range(50)))
            assert [json.loads(answer.text)["n"] for answer in told] == list(range(50))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), LIMIT))


@pytest.mark.parametrize("factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_line_outlives_its_loops(badserver: str, factory: object) -> None:
    line = Line.stdio(badserver)
    pids = set()
    for _ in range(5):
        with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
            pids.add(runner.run(pid_of(line)))
    assert len(pids) == 1
    asyncio.run(line.close())


def test_a_loop_that_ends_with_calls_under_way_takes_only_those_along(badserver: str) -> None:
    line = Line.stdio(badserver)

    async def leave() -> int:
        asyncio.ensure_future(line.call_tool("hang"))
        return await pid_of(line)

    first = asyncio.run(leave())
    assert asyncio.run(pid_of(line)) == first
    asyncio.run(line.close())


def test_several_loops_in_threads_share_a_line(badserver: str) -> None:
    line, failed = Line.stdio(badserver), []

    async def work(of: int) -> None:
        calls = (line.call_tool("echo", {"n": of * 1000 + n}) for n in range(50))
        told = await asyncio.gather(*calls)
        assert [json.loads(answer.text)["n"] for answer in told] == [of * 1000 + n for n in range(50)]
        async with Line.stdio(badserver) as own:
            await own.call_tool("echo")

    def thread(of: int) -> None:
        try:
            asyncio.run(asyncio.wait_for(work(of), LIMIT))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=thread, args=(of,)) for of in range(4)]
    for started in threads:
        started.start()
    for started in threads:
        started.join()
    assert not failed, failed
    asyncio.run(line.close())


def test_a_line_may_be_dropped_in_another_thread(badserver: str) -> None:
    async def main() -> None:
        lines = [Line.stdio(badserver)]
        await lines[0].call_tool("echo")
        await asyncio.to_thread(lines.clear)
        async with Line.stdio(badserver) as line:
            await line.call_tool("echo")

    asyncio.run(asyncio.wait_for(main(), LIMIT))


async def test_cancelling_a_task_cancels_its_call_and_nothing_else(badserver: str, book: Path) -> None:
    async with Line.stdio(badserver, ["--book", str(book)]) as line:
        first = await pid_of(line)
        beside = asyncio.ensure_future(line.call_tool("sleep", {"ms": 300, "nonce": "beside"}))
        calls = [asyncio.ensure_future(line.call_tool("hang", {"nonce": f"hang-{n}"})) for n in range(20)]
        while book.read_text().count("read hang-") < 20:
            await line.call_tool("echo")  # until the server has all of them
        for call in calls:
            call.cancel()
        told = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in told)
        assert (await beside).text
        while book.read_text().count("cancelled:") < 20:
            await line.call_tool("echo")  # until the server has heard of all of them
        assert await pid_of(line) == first
        assert line.status.generation == 1
    assert runs(book).count("beside") == 1


async def test_a_timeout_of_asyncios_is_a_cancellation(badserver: str) -> None:
    async with Line.stdio(badserver) as line:
        with pytest.raises(asyncio.TimeoutError) as told:
            await asyncio.wait_for(line.call_tool("hang"), 0.1)
        assert not isinstance(told.value, linetender.LinetenderError)
        assert await line.call_tool("echo")


async def test_cancelling_before_the_server_is_up(badserver: str, book: Path) -> None:
    async with Line.stdio(badserver, ["--start-delay-ms", "200", "--book", str(book)]) as line:
        call = asyncio.ensure_future(line.call_tool("echo", {"nonce": "never"}))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await line.call_tool("echo", {"nonce": "after"})
    assert runs(book) == ["after"]


def test_outside_a_loop_it_says_so(badserver: str) -> None:
    line = Line.stdio(badserver, lazy=True)
    call = line.call_tool("echo")
    with pytest.raises(RuntimeError, match="under trio use linetender.session"):
        call.send(None)
