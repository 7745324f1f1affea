"""A line, a session, and the bare SDK client, in turns in one run: how long a call takes, and what it costs this process.

python pairs.py BADSERVER [--rounds 10] [--calls 500]

Each has a process of the same server. They take turns, so that what else the machine does falls on all of them. The time of a call is the
median over a round; the processor time is that of this process, all threads, per call; what is printed is the median over the rounds,
and each client's share of the bare SDK's.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median

import mcp
from mcp.client.stdio import stdio_client

import linetender

Call = Callable[[], Awaitable[object]]


async def measure(call: Call, calls: int, at_once: int) -> tuple[float, float]:
    """Microseconds of a call, and of this process's processors per call."""
    times: list[float] = []

    async def task() -> None:
        for _ in range(calls // at_once):
            began = time.perf_counter()
            await call()
            times.append(time.perf_counter() - began)

    used = time.process_time()
    await asyncio.gather(*(task() for _ in range(at_once)))
    used = time.process_time() - used
    return median(times) * 1e6, used / len(times) * 1e6


async def main(badserver: str, rounds: int, calls: int) -> None:
    parameters = mcp.StdioServerParameters(command=badserver)
    async with AsyncExitStack() as stack:

        async def client(transport: object) -> Call:
            read, write = await stack.enter_async_context(transport)  # type: ignore[arg-type, var-annotated]
            session = await stack.enter_async_context(mcp.ClientSession(read, write))
            await session.initialize()
            await session.list_tools()
            return lambda: session.call_tool("echo", {"message": "hello"})

        line = await stack.enter_async_context(linetender.Line.stdio(badserver))
        contestants: dict[str, Call] = {
            "bare SDK": await client(stdio_client(parameters)),
            "linetender.Line": lambda: line.call_tool("echo", {"message": "hello"}),
            "SDK on linetender.session": await client(linetender.session(parameters)),
        }
        for at_once in (1, 64):
            seen: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
            for _ in range(rounds):
                for name, call in contestants.items():
                    seen[name].append(await measure(call, calls, at_once))
            print(f"{at_once} in flight: p50 of a call, processor time per call, share of the bare SDK's")
            bare = [median(values) for values in zip(*seen["bare SDK"])]
            for name, values in seen.items():
                took, used = (median(value) for value in zip(*values))
                print(f"  {name:26} {took:8.0f} µs {used:8.0f} µs   {took / bare[0]:.2f}  {used / bare[1]:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("badserver")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=512)
    said = parser.parse_args()
    asyncio.run(main(said.badserver, said.rounds, said.calls))
