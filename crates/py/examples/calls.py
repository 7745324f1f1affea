"""Calls a server that is killed now and then, and says what became of each call.

python calls.py COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import linetender


async def main(command: str, *args: str) -> None:
    async with linetender.Line.stdio(command, args, name="example") as line:
        print(len(await line.list_tools()), "tools")
        for n in range(6):
            if n % 3 == 2 and line.pid is not None:
                os.kill(line.pid, signal.SIGKILL)
            try:
                answer = await line.call_tool("echo", {"message": f"call {n}"}, timeout=30)
            except linetender.LinetenderError as error:
                ran = "did not run" if error.not_executed else "may have run"
                print(f"call {n} {ran} ({error.delivery}): {error.cause}; next try: {error.next_try}")
            else:
                print(f"call {n}: {answer.text}")
        print("generation", line.status.generation)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
