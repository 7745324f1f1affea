"""What the conformance suite's scenarios of the tasks extension want of a server, by hand on a pipe: no SDK has all of it. Modern era only."""

import json
import sys
import threading
import time
import uuid

TASKS = "io.modelcontextprotocol/tasks"
META = "io.modelcontextprotocol/"
NOW = "2026-01-01T00:00:00Z"
lock = threading.Lock()
tasks: dict[str, dict] = {}

TOOLS = ["greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"]


class Refused(Exception):
    def __init__(self, code: int, message: str, data: dict | None = None) -> None:
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


def missing() -> Refused:
    needed = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return Refused(-32021, "Missing required client capability", needed)


def text(words: str, error: bool = False) -> dict:
    return {"resultType": "complete", "content": [{"type": "text", "text": words}], "isError": error}


def ask(message: str, name: str) -> dict:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def begin(run=None, asks: dict | None = None) -> dict:
    task = {"taskId": str(uuid.uuid4()), "status": "working", "createdAt": NOW, "lastUpdatedAt": NOW}
    task |= {"ttlMs": 60000, "pollIntervalMs": 50}
    tasks[task["taskId"]] = task
    begun = {"resultType": "task", **task}
    if asks:
        task["status"], task["inputRequests"] = "input_required", asks
    if run:
        threading.Thread(target=run, args=(task,), daemon=True).start()
    return begun


def ends(task: dict, **how) -> None:
    if task["status"] not in ("cancelled", "completed", "failed"):
        task.pop("inputRequests", None)
        task |= how


def call(params: dict, declared: dict) -> dict:
    name, given = params["name"], params.get("arguments") or {}
    can = TASKS in declared.get("extensions", {})
    if name == "greet":
        return text(f"Hello, {given.get('name')}!")
    if name == "slow_compute":
        seconds = given.get("seconds", 0)
        if not can or seconds == 0:
            time.sleep(min(seconds, 2))
            return text(f"computed {given.get('label', '')}")

        def compute(task):
            time.sleep(seconds)
            ends(task, status="completed", result=text("computed"))

        return begin(compute)
    if not can:
        raise missing()
    if name == "failing_job":
        return begin(lambda task: (time.sleep(1), ends(task, status="completed", result=text("it failed", True))))
    if name == "protocol_error_job":
        return begin(lambda task: ends(task, status="failed", error={"code": -32603, "message": "it broke"}))
    if name == "confirm_delete":
        return begin(asks={"confirm": ask("delete it?", "confirm")})
    if name == "multi_input":
        return begin(asks={"first": ask("first?", "first"), "second": ask("second?", "second")})
    if name == "test_tool_with_task":
        answers = params.get("inputResponses")
        if not answers:
            return {"resultType": "input_required", "inputRequests": {"user_name": ask("who?", "name")}, "requestState": "1"}
        return begin(lambda task: ends(task, status="completed", result=text(f"hello {json.dumps(answers)}")))
    raise Refused(-32602, "no such tool")


def answer(method: str, params: dict) -> dict:
    declared = params.get("_meta", {}).get(META + "clientCapabilities", {})
    if method == "server/discover":
        capabilities = {"tools": {}, "extensions": {TASKS: {}}}
        return {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0,
                "cacheScope": "private", "_meta": {META + "serverInfo": {"name": "tasks", "version": "1"}}}
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        return {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        return call(params, declared)
    if method in ("tasks/get", "tasks/update", "tasks/cancel"):
        if TASKS not in declared.get("extensions", {}):
            raise missing()
        task = tasks.get(params.get("taskId"))
        if task is None:
            raise Refused(-32602, "Task not found")
        if method == "tasks/get":
            return {"resultType": "complete", **task}
        if method == "tasks/cancel":
            ends(task, status="cancelled")
        for key in params.get("inputResponses", {}):
            task.get("inputRequests", {}).pop(key, None)
        if method == "tasks/update" and not task.get("inputRequests"):
            ends(task, status="completed", result=text("confirmed"))
        return {"resultType": "complete"}
    raise Refused(-32601, "method not found")


def handle(message: dict) -> None:
    said = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        said["result"] = answer(message["method"], message.get("params") or {})
    except Refused as refused:
        said["error"] = refused.error
    with lock:
        print(json.dumps(said), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        threading.Thread(target=handle, args=(message,), daemon=True).start()
