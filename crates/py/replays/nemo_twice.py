"""After #1935: a call that ends its server is sent again by the reconnect, and runs twice.

The server is linetender's fault server; its tool ``kill`` writes into a book that it runs, and dies. A tool that books a flight and
crashes before it answers is the same.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import mcp
from both import Seen, main
from nat.plugins.mcp.client.client_base import MCPStdioClient
from nemo_agent_toolkit import KeptClient

BADSERVER = os.environ["LINETENDER_BADSERVER"]


async def replay(kept: bool) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "book")
        client: Any
        if kept:
            client = KeptClient(mcp.StdioServerParameters(command=BADSERVER, args=["--book", str(book)]))
        else:
            client = MCPStdioClient(BADSERVER, ["--book", str(book)])
        async with client:
            tool = await client.get_tool("kill")
            told = await asyncio.wait_for(tool.acall({"nonce": "flight"}), 30)
        runs = [line.split()[1] for line in book.read_text().splitlines() if line.startswith("run ")].count("flight")
    return runs == 1, f"called once, ran {'once' if runs == 1 else f'{runs} times'}; the model reads: {told}"


if __name__ == "__main__":
    main("after NVIDIA/NeMo-Agent-Toolkit#1935", "nvidia-nat-mcp", replay)
