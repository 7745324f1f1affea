"""A small server on the official Python SDK, of either major version."""

import os
import sys
import time

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:  # 2.x
    from mcp.server import MCPServer as Server

# The SDK keeps copies of its own, and may put something else in this place.
OUTPUT = os.readlink("/proc/self/fd/1")

# What it ran is written down here, if anybody wants to know.
BOOK = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if len(sys.argv) > 1 else None

server = Server("python-mcp")


@server.tool()
def echo(message: str, nonce: str = "") -> str:
    if BOOK is not None and nonce:
        os.write(BOOK, f"run {nonce} {os.getpid()}\n".encode())
    return f"Echo: {message}"


@server.tool()
def nap(seconds: float) -> str:
    time.sleep(seconds)
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


server.run()
