"""A server made with the official SDK, in the version that is installed: over stdio, or over HTTP with a port as its argument."""

from __future__ import annotations

import os
import sys

try:
    from mcp.server import MCPServer as Server
except ImportError:  # version 1
    from mcp.server.fastmcp import FastMCP as Server

server = Server("tools", log_level="ERROR")


@server.tool()
def pid() -> str:
    """The number of the process that answers."""
    return str(os.getpid())


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run()
    elif Server.__name__ == "MCPServer":
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.settings.port = int(sys.argv[1])
        server.run("streamable-http")
