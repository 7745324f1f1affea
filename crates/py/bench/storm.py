"""Calls from many tasks while the server is killed again and again: what hung, what ran twice, and what it cost in memory.

python storm.py BADSERVER [--calls 10000] [--tasks 64] [--kills 100]

Each call has a number, and the server writes down in its book which it ran. A call with an answer has run once, a call that is
said not to have been executed has not run, and a call of unknown outcome has run at most once. Exits with 1 if one of that is not so.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import linetender

#: A call that takes longer hangs.
HUNG = 60.0


def resident() -> int:
    """Kilobytes of memory of this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Storm:
    """What became of all calls."""

    def __init__(self, line: linetender.Line, calls: int, kills: int) -> None:
        self.line = line
        self.left = iter(range(calls))
        self.calls, self.kills = calls, kills
        self.done = 0
        # All at once: what grows is then the library's.
        self.verdicts = [""] * calls
        self.memory: list[int] = []
        self.killed = 0

    async def task(self) -> None:
        for n in self.left:
            nonce = f"call-{n}"
            try:
                await asyncio.wait_for(self.line.call_tool("write", {"nonce": nonce}), HUNG)
                self.verdicts[n] = "answered"
            except linetender.LinetenderError as error:
                self.verdicts[n] = error.delivery
            except asyncio.TimeoutError:
                self.verdicts[n] = "hung"
            self.done += 1
            # A kill each so many calls, whoever makes them.
            if self.done * self.kills // self.calls > self.killed and self.line.pid is not None:
                self.killed += 1
                os.kill(self.line.pid, signal.SIGKILL)
            if self.done % (self.calls // 10) == 0:
                gc.collect()
                self.memory.append(resident())


async def main(badserver: str, calls: int, tasks: int, kills: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "book"
        # Each kill is a failure of a server that has served its callers: it comes back at once.
        async with linetender.Line.stdio(badserver, ["--book", str(book)], name="storm") as line:
            await line.ready()
            storm = Storm(line, calls, kills)
            await asyncio.gather(*(storm.task() for _ in range(tasks)))
            generation = line.status.generation
        words = (text.split() for text in book.read_text().splitlines())
        ran = Counter(line[1] for line in words if line[0] == "run")
    counted = Counter(storm.verdicts)
    print(f"{len(storm.verdicts)} calls, {tasks} tasks, {storm.killed} kills, {generation} generations")
    print(", ".join(f"{verdict}: {count}" for verdict, count in sorted(counted.items())))
    twice = [nonce for nonce, times in ran.items() if times > 1]
    verdicts = list(enumerate(storm.verdicts))
    missing = [n for n, verdict in verdicts if verdict == "answered" and not ran[f"call-{n}"]]
    lies = [n for n, verdict in verdicts if verdict == "not executed" and ran[f"call-{n}"]]
    print(f"ran twice: {len(twice)}, answered and not run: {len(missing)}, called not executed and run: {len(lies)}")
    print("memory, one per tenth of the calls (KiB):", *storm.memory)
    return not (counted["hung"] or twice or missing or lies or counted[""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("badserver")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--kills", type=int, default=100)
    said = parser.parse_args()
    sys.exit(0 if asyncio.run(main(said.badserver, said.calls, said.tasks, said.kills)) else 1)
