"""A server on FastMCP, as somebody writes it in ten minutes: with a variable."""

from fastmcp import FastMCP

mcp = FastMCP("fast")
kept = []


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b


@mcp.tool
def remember(word: str) -> str:
    kept.append(word)
    return f"{len(kept)} kept"


@mcp.tool
def recall() -> list[str]:
    return kept


mcp.run(show_banner=False)
