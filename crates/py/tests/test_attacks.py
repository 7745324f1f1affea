"""What broke when it was attacked: each row is in docs/internals/found.md."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

import mcp
import pytest
import trio
from test_process import run

import linetender
from linetender import Line, Server
from linetender._loop import _Waiting

HOSTILE = [str(Path(__file__).with_name("hostile_server.py"))]


def test_a_server_that_dies_under_a_write_does_not_end_the_program_by_sigpipe() -> None:
    run("""
        import linetender
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

        async def main():
            async with linetender.Line.stdio(BADSERVER) as line:
                for _ in range(5):
                    large = (line.call_tool("echo", {"x": "y" * 200000}, timeout=8) for _ in range(5))
                    await asyncio.gather(line.call_tool("kill", timeout=5), *large, return_exceptions=True)

        asyncio.run(main())
    """)


def test_its_thread_takes_no_signal_of_the_programs() -> None:
    run("""
        import linetender
        line = linetender.Line.stdio(BADSERVER)
        asyncio.run(line.ready())
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/comm") as name, open(f"/proc/self/task/{task}/status") as status:
                if name.read().strip() == "linetender":
                    blocked = next(line for line in status if line.startswith("SigBlk"))
                    blocked = int(blocked.split()[1], 16)
                    assert all(blocked >> (number - 1) & 1 for number in (signal.SIGTERM, signal.SIGPIPE)), hex(blocked)
                    assert not blocked >> (signal.SIGSEGV - 1) & 1, hex(blocked)
                    break
        else:
            raise AssertionError("there is no thread")
        asyncio.run(line.close())
    """)


async def test_what_a_progress_callback_raises_costs_no_other_call_its_answer(badserver: str) -> None:
    def callback(*_: object) -> None:
        raise asyncio.CancelledError("from the callback")

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with Line.stdio(badserver) as line:
        await line.ready()
        first = line.call_tool("progress", {"times": 1, "ms": 100}, on_progress=callback)
        calls = [asyncio.ensure_future(first)]
        calls += [asyncio.ensure_future(line.call_tool("sleep", {"ms": 100}, timeout=20)) for _ in range(20)]
        await asyncio.sleep(0.05)
        time.sleep(1)  # the loop is busy: all of it comes at once
        done, waiting = await asyncio.wait(calls, timeout=30)
        assert len(done) == 21, waiting
        assert all(call.exception() is None for call in done)


def test_an_interrupt_costs_no_call_its_answer(badserver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that survives Ctrl-C and runs its loop again, as interactive ones do."""
    told = _Waiting.told

    def interrupted(self: _Waiting, kind: int, value: object) -> None:
        monkeypatch.setattr(_Waiting, "told", told)
        raise KeyboardInterrupt

    async def calls() -> None:
        nonlocal tasks
        tasks = [asyncio.ensure_future(line.call_tool("echo", {}, timeout=20)) for _ in range(10)]
        await asyncio.sleep(0)  # they begin
        time.sleep(0.5)  # and are answered while the loop is busy
        monkeypatch.setattr(_Waiting, "told", interrupted)
        await asyncio.wait(tasks)

    tasks: list[asyncio.Future[Any]] = []
    loop = asyncio.new_event_loop()
    line = Line.stdio(badserver)
    loop.run_until_complete(line.ready())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(calls())
    done, waiting = loop.run_until_complete(asyncio.wait(tasks, timeout=20))
    assert not waiting and all(task.exception() is None for task in done)
    loop.run_until_complete(line.close())
    loop.close()


def test_loops_that_end_leave_no_descriptor(badserver: str) -> None:
    line = Line.stdio(badserver)
    asyncio.run(line.ready())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        asyncio.run(line.call_tool("echo", {}))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    asyncio.run(line.close())


def test_a_loop_that_is_closed_under_a_call_keeps_nothing() -> None:
    run("""
        import linetender

        def once():
            loop = asyncio.new_event_loop()
            line = linetender.Line.stdio(BADSERVER)
            pid = loop.run_until_complete(pid_of(line))
            hangs = loop.create_task(line.call_tool("hang"))
            loop.run_until_complete(asyncio.sleep(0.1))
            hangs._log_destroy_pending = False
            loop.close()
            return pid

        pid = once()
        gc.collect()
        gone(pid)
    """)


def test_a_line_that_is_dropped_after_a_failed_call_is_gone() -> None:
    run("""
        import linetender

        async def main():
            line = linetender.Line.stdio(BADSERVER)
            pid = await pid_of(line)
            try:
                await line.call_tool("hang", timeout=0.1)
            except linetender.CallTimeout:
                pass
            return pid

        gc.disable()
        gone(asyncio.run(main()))
    """)


async def test_what_the_sdk_cannot_spell_fails_alone(badserver: str) -> None:
    async with linetender.session(badserver) as (read, write), mcp.ClientSession(read, write) as client:
        await client.initialize()
        await refused_alone(client)


def test_what_the_sdk_cannot_spell_fails_alone_under_trio(badserver: str) -> None:
    async def main() -> None:
        async with linetender.session(badserver) as (read, write), mcp.ClientSession(read, write) as client:
            await client.initialize()
            await refused_alone(client)

    trio.run(main)


async def refused_alone(client: Any) -> None:
    with pytest.raises(Exception, match="cannot be written as JSON.*not executed"):
        await client.call_tool("echo", {"text": "\ud83d"})
    assert (await client.call_tool("echo", {"text": "fine"})).content


async def test_a_number_with_too_many_digits_loses_no_answer_in_a_session() -> None:
    async with (
        linetender.session(sys.executable, HOSTILE) as (read, write),
        mcp.ClientSession(read, write) as client,
    ):
        await client.initialize()
        for tool in ("long_number", "long_code"):
            with pytest.raises(Exception, match="cannot parse"):
                await client.call_tool(tool, {})
        assert (await client.call_tool("fine", {})).content


async def test_a_number_with_too_many_digits_loses_no_answer_of_a_line() -> None:
    async with Line.stdio(sys.executable, [*HOSTILE, "--long-list"]) as line:
        assert len(await line.list_tools()) == 3
        answer = await line.call_tool("long_number")
        assert answer.text == "x" and answer.structured["v"] == float("inf")
        with pytest.raises(linetender.LinetenderError):
            await line.call_tool("long_code")


async def test_a_session_that_is_cancelled_as_it_is_entered_ends(badserver: str) -> None:
    async def enter() -> None:
        async with linetender.session(badserver):
            await asyncio.get_running_loop().create_future()

    task = asyncio.ensure_future(enter())
    await asyncio.sleep(0)  # it has entered, and its own tasks have not begun
    for other in asyncio.all_tasks() - {asyncio.current_task()}:
        if other is task or "_carry" in repr(other.get_coro()):
            other.cancel()
    done, _ = await asyncio.wait([task], timeout=20)
    assert done


async def test_a_callback_that_never_ends_does_not_keep_the_answer(
    badserver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linetender._loop._PATIENCE", 0.1)

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    async with Line.stdio(badserver) as line:
        assert (await line.call_tool("progress", {"times": 1, "ms": 1}, on_progress=never)).content


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_config_that_is_no_file_is_refused(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    make(path)
    with pytest.raises(linetender.ConfigError, match="not a regular file|is a directory|Is a directory"):
        Server.from_config(path, "a")


def test_a_config_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    path.chmod(0o666)
    with pytest.raises(linetender.ConfigError, match="written by every user"):
        Server.from_config(path, "a")


@pytest.mark.parametrize(
    "made",
    [
        lambda: Server.stdio("x", "--full"),
        lambda: Server.stdio("x", safe_tools="write"),
        lambda: Server.http("http://localhost:1", safe_tools="write"),
        lambda: Server.stdio("x", env={"A": "a\0b"}),
        lambda: Server.stdio("x", cwd="a\0b"),
        lambda: Server.stdio("x").with_settings(call_timeout=float("nan")),
        lambda: Server.stdio("x").with_settings(wait=float("inf")),
    ],
)
def test_slips_of_the_pen_are_refused(made: Any) -> None:
    with pytest.raises(linetender.ConfigError):
        made()
