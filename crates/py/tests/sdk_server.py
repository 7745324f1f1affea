"""A server made with the official SDK, in the version that is installed."""

from __future__ import annotations

import os
import sys

try:
    from mcp.server import MCPServer as Server
except ImportError:  # version 1
    from mcp.server.fastmcp import FastMCP as Server

server = Server("sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def pid() -> int:
    """The number of this process."""
    return os.getpid()


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@server.resource("note://today")
def today() -> str:
    """A note."""
    return "sunny"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Greet {name}."


if __name__ == "__main__":
    print("starting", file=sys.stderr)
    server.run()
