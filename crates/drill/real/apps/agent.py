"""An agent on the official Python SDK at the address of all servers: the page of a tool, and a task.

    agent.py legacy|modern URL SERVER
"""

import asyncio
import sys
from typing import Any, Literal

PAGE = "text/html;profile=mcp-app"


def meta_of(thing) -> dict:
    return thing.meta or {}


async def page(agent, server: str) -> None:
    tools = {one.name: one for one in (await agent.list_tools()).tools}
    uri = meta_of(tools[f"{server}__clock"])["ui"]["resourceUri"]
    assert uri == f"ui://{server}/clock/app.html", uri
    assert uri in [str(one.uri) for one in (await agent.list_resources()).resources]
    contents = (await agent.read_resource(uri)).contents[0]
    kind = getattr(contents, "mime_type", None) or contents.mimeType
    assert (str(contents.uri), kind) == (uri, PAGE) and "clock" in contents.text, contents
    result = await agent.call_tool(f"{server}__clock", {})
    assert result.content[0].text == "noon", result


async def legacy(url: str, server: str) -> str:
    from mcp import ClientSession, types
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as agent:
        hello = await agent.initialize()
        assert hello.capabilities.tasks.requests.tools.call is not None, hello
        await page(agent, server)
        tasks = agent.experimental
        begun = await tasks.call_tool_as_task(f"{server}__slow", {"seconds": 0.2})
        other = await tasks.call_tool_as_task(f"{server}__slow", {"seconds": 60})
        ids = [begun.task.taskId, other.task.taskId]
        async for state in tasks.poll_task(ids[0]):
            assert state.taskId == ids[0]
        assert state.status == "completed", state
        result = await tasks.get_task_result(ids[0], types.CallToolResult)
        assert result.content[0].text == "slept 0.2", result
        assert (await tasks.cancel_task(ids[1])).status == "cancelled"
        listed, cursor = [], None
        while True:
            part = await tasks.list_tasks(cursor)
            listed += [one.taskId for one in part.tasks]
            cursor = part.nextCursor
            if cursor is None:
                break
        assert sorted(listed) == sorted(ids), listed
        return hello.protocolVersion


async def modern(url: str, server: str) -> str:
    import mcp_types as types
    from mcp import Client
    from mcp.client.extension import ClientExtension, ResultClaim, advertise

    seen: list[str] = []

    class Task(types.Result):
        result_type: Literal["task"] = "task"
        task_id: str
        status: str

    class State(types.Result):
        task_id: str
        status: str
        result: dict[str, Any] | None = None

    class About(types.RequestParams):
        task_id: str

    class Get(types.Request[About, Literal["tasks/get"]]):
        method: Literal["tasks/get"] = "tasks/get"
        params: About

    class Tasks(ClientExtension):
        identifier = "io.modelcontextprotocol/tasks"

        def claims(self):
            return [ResultClaim(result_type="task", model=Task, resolve=self.resolve)]

        async def resolve(self, begun, ctx):
            seen.append(begun.task_id)
            while True:
                state = await ctx.session.send_request(Get(params=About(task_id=begun.task_id)), State)
                assert state.task_id == begun.task_id, state
                if state.status != "working":
                    assert state.status == "completed", state
                    return types.CallToolResult.model_validate(state.result)
                await asyncio.sleep(0.05)

    ui = advertise("io.modelcontextprotocol/ui", {"mimeTypes": [PAGE]})
    async with Client(url, extensions=[Tasks(), ui]) as agent:
        assert agent.protocol_version >= "2026", agent.protocol_version
        declared = agent.server_capabilities.extensions
        assert {"io.modelcontextprotocol/ui", "io.modelcontextprotocol/tasks"} <= set(declared), declared
        await page(agent, server)
        result = await agent.call_tool(f"{server}__slow", {"seconds": 0.2})
        assert result.content[0].text == "slept 0.2" and len(seen) == 1, (result, seen)
        return agent.protocol_version


era, url, server = sys.argv[1:]
print(asyncio.run((legacy if era == "legacy" else modern)(url, server)), "page and task", flush=True)
