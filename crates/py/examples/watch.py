"""Holds all servers of an agent's config file, and prints what happens to them until it is interrupted.

python watch.py mcp.json
"""

from __future__ import annotations

import asyncio
import sys

import linetender


def show(line: linetender.Line, status: linetender.Status) -> None:
    print(f"{line.name}: {status.state}", f"({status.cause})" if status.cause else "", flush=True)


async def watch(line: linetender.Line) -> None:
    events = line.events()  # from now on: what happens after the next line is told
    show(line, line.status)
    async for event in events:
        if isinstance(event, linetender.StateChanged):
            show(line, event.status)


async def main(path: str) -> None:
    async with linetender.Rig.from_config(path) as rig:
        await asyncio.gather(*(watch(line) for line in rig.lines()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
