"""A small server on the official Python SDK, of either major version."""

import asyncio
import os
import sys
import time

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:  # 2.x
    from mcp.server import MCPServer as Server

# The SDK keeps copies of its own, and may put something else in this place.
OUTPUT = os.readlink("/proc/self/fd/1")

ARGS = sys.argv[1:]

# `--http PORT`: over HTTP and not over pipes. `--sse PORT`: over the transport of 2024-11-05.
WAY = {"--http": "streamable-http", "--sse": "sse"}.get(ARGS[0] if ARGS else "")
PORT = int(ARGS[1]) if WAY else None
if PORT is not None:
    ARGS = ARGS[2:]

# What it ran is written down here, if anybody wants to know.
BOOK = os.open(ARGS[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if ARGS else None

server = Server("python-mcp")


def runs(nonce: str) -> None:
    if BOOK is not None and nonce:
        os.write(BOOK, f"run {nonce} {os.getpid()}\n".encode())


@server.tool()
def echo(message: str, nonce: str = "") -> str:
    runs(nonce)
    return f"Echo: {message}"


@server.tool()
def nap(seconds: float, nonce: str = "") -> str:
    runs(nonce)
    time.sleep(seconds)
    return "awake"


@server.tool()
async def doze(seconds: float, nonce: str = "") -> str:
    runs(nonce)
    await asyncio.sleep(seconds)
    return "awake"


@server.tool()
def close_output() -> str:
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if os.readlink(f"/proc/self/fd/{fd}") == OUTPUT:
                os.close(fd)
        except OSError:
            pass
    return "nobody hears this"


if PORT is None:
    server.run()
elif hasattr(server, "settings") and hasattr(server.settings, "port"):  # 1.x
    server.settings.port = PORT
    server.run(transport=WAY)
else:
    server.run(transport=WAY, port=PORT)
