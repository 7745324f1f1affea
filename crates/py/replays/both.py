"""Runs a replay twice, each time in a process of its own: without linetender, where it has to fail as its report says, and with it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "adapters"))
from faults import in_a_process, row, told  # noqa: E402

#: Whether the agent still has its tools, and what was seen.
Seen = tuple[bool, str]


async def buried(pid: int) -> None:
    """Returns when the end of a process is known to its parent. A call in the moment before may fail in another way."""
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        await asyncio.sleep(0.02)  # between two looks


def main(report: str, package: str, replay: Callable[[bool], Awaitable[Seen]]) -> None:
    """``replay`` gets whether it is to use linetender."""

    async def tell(kept: bool) -> None:
        alive, text = await replay(kept)
        told(ok=alive, text=text)

    if sys.argv[1:]:
        asyncio.run(tell(sys.argv[1] == "with"))
        return
    cells, fine = [], True
    modes = ("without", "with")
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(in_a_process, modes))
    for mode, (result, ended, errors) in zip(modes, results, strict=True):
        if result is None:
            sys.stderr.write(errors)
            as_promised = False
        else:
            as_promised = result["ok"] == (mode == "with") and not (mode == "with" and ended)
        text = (result["text"] if result else "no result") + ended
        cells.append(text if as_promised else f"NOT AS PROMISED: {text}")
        fine = fine and as_promised
    row(report, f"{package} {version(package)}, mcp {version('mcp')}", *cells)
    sys.exit(0 if fine else 1)
