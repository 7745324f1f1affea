"""A small server on fastmcp."""

import asyncio
import os
import sys
import time

from fastmcp import FastMCP

# The SDK keeps copies of its own, and may put something else in this place.
OUTPUT = os.readlink("/proc/self/fd/1")

ARGS = sys.argv[1:]

# `--http PORT`: over HTTP and not over pipes.
PORT = int(ARGS[1]) if ARGS[:1] == ["--http"] else None
if PORT is not None:
    ARGS = ARGS[2:]

# What it ran is written down here, if anybody wants to know.
BOOK = os.open(ARGS[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if ARGS else None

server = FastMCP("fastmcp")


@server.tool
def echo(message: str, nonce: str = "") -> str:
    if BOOK is not None and nonce:
        os.write(BOOK, f"run {nonce} {os.getpid()}\n".encode())
    return f"Echo: {message}"


@server.tool
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


@server.tool
async def doze(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "awake"


@server.tool
def close_output() -> str:
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if os.readlink(f"/proc/self/fd/{fd}") == OUTPUT:
                os.close(fd)
        except OSError:
            pass
    return "nobody hears this"


if PORT is None:
    server.run(show_banner=False)
else:
    server.run(transport="http", host="127.0.0.1", port=PORT, log_level="WARNING", show_banner=False)
