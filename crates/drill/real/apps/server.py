"""A server on the official Python SDK (2.x) with a tool that has a page (its own extension for that) and a tool that runs as a task (an
extension of ours on its interface: it has none of its own)."""

import asyncio
import uuid
from typing import Any

from mcp.server import MCPServer
from mcp.server.apps import Apps
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from pydantic import ConfigDict, Field

NOW = "2026-01-01T00:00:00Z"
TASKS = "io.modelcontextprotocol/tasks"


class About(RequestParams):
    model_config = ConfigDict(populate_by_name=True)
    task_id: str = Field(alias="taskId")


class Tasks(Extension):
    identifier = TASKS

    def __init__(self) -> None:
        self.all: dict[str, dict[str, Any]] = {}

    def methods(self):
        modern = frozenset({"2026-07-28"})
        return [
            MethodBinding("tasks/get", About, self.get, modern),
            MethodBinding("tasks/cancel", About, self.cancel, modern),
        ]

    def find(self, params: About) -> dict[str, Any]:
        if params.task_id not in self.all:
            raise MCPError(-32602, "Task not found")
        return self.all[params.task_id]

    async def get(self, ctx, params: About):
        return {"resultType": "complete", **self.find(params)}

    async def cancel(self, ctx, params: About):
        self.find(params)["status"] = "cancelled"
        return {"resultType": "complete"}

    async def intercept_tool_call(self, params, ctx, call_next):
        capabilities = ctx.session.client_params.capabilities if ctx.session.client_params else None
        declared = (getattr(capabilities, "extensions", None) or {}) if capabilities else {}
        if params.name != "slow" or TASKS not in declared:
            return await call_next(ctx)
        seconds = params.arguments["seconds"]
        task = {"taskId": str(uuid.uuid4()), "status": "working", "createdAt": NOW, "lastUpdatedAt": NOW}
        task |= {"ttlMs": 60000, "pollIntervalMs": 50}
        self.all[task["taskId"]] = task

        async def run() -> None:
            await asyncio.sleep(seconds)
            if task["status"] == "working":
                content = [{"type": "text", "text": f"slept {seconds}"}]
                task["result"] = {"resultType": "complete", "content": content, "isError": False}
                task["status"] = "completed"

        task_of[task["taskId"]] = asyncio.create_task(run())
        return {"resultType": "task", **task}


task_of: dict[str, Any] = {}
apps = Apps()


@apps.tool(resource_uri="ui://clock/app.html")
def clock() -> str:
    return "noon"


apps.add_html_resource("ui://clock/app.html", "<!doctype html><title>clock</title>")
server = MCPServer("apps", extensions=[apps, Tasks()])


@server.tool(structured_output=False)
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"slept {seconds}"


server.run()
