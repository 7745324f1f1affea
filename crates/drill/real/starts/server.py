"""A server with one tool on the official Python SDK of any version: `echo`."""

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    try:
        from mcp.server import MCPServer as Server  # 2.x
    except ImportError:
        Server = None  # before 1.2


def old() -> None:
    import asyncio

    from mcp.server import Server as LowServer
    from mcp.server.stdio import stdio_server
    from mcp.types import TextContent, Tool

    server = LowServer("python-mcp")

    @server.list_tools()
    async def tools():
        schema = {"type": "object", "properties": {"message": {"type": "string"}}}
        return [Tool(name="echo", description="", inputSchema=schema)]

    @server.call_tool()
    async def call(name, arguments):
        return [TextContent(type="text", text=arguments["message"])]

    async def main():
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(main())


if Server is None:
    old()
else:
    made = Server("python-mcp")

    @made.tool()
    def echo(message: str) -> str:
        return message

    made.run()
