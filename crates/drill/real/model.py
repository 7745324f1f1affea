"""A model that only plays its part, and keeps everything it was sent: what an agent makes of a failed tool is what it
tells its model next.

It speaks the four languages of models that agents know, streamed or whole. Whoever talks to it gets the tools of its
script called, one each turn, and then a plain word. Where in the script a conversation stands is read off the results
that it carries, so that nothing has to be remembered between two requests.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = ("kill", "echo")  # one tool that takes its server down, one that shows whether the agent goes on
LAST_WORD = "That is all."
RETOLD = re.compile(r"^(?:Observation|Error):\n", re.M)  # how smolagents tells of a tool: in the user's words


class Model(ThreadingHTTPServer):
    """Listens on a port of its own; `heard` is every body that it was sent, in order."""

    daemon_threads = True

    def __init__(self, script=SCRIPT):
        super().__init__(("127.0.0.1", 0), Ear)
        self.script, self.heard = script, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def told(self) -> list[str]:
        """What the tools came to, as the model was told at the end of the longest conversation."""
        return max(map(results, self.heard), key=len, default=[])


class Ear(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer("application/json", json.dumps({"object": "list", "data": [], "models": []}))

    def do_HEAD(self):
        self.answer("application/json", "")

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(text or b"{}")
        except ValueError:
            body = {}
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self.answer("application/json", '{"input_tokens":1}')
        speak = next((speak for end, speak in LANGUAGES.items() if path.endswith(end)), None)
        if speak is None:
            return self.answer("application/json", "{}")
        self.server.heard.append(body)
        whole, events = speak(next_call(body, self.server.script))
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            return self.answer("text/event-stream", "".join(events))
        self.answer("application/json", json.dumps(whole))

    def answer(self, kind: str, text: str):
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def objects(value):
    """Every object in it, outermost first."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(one)


def results(body: dict) -> list[str]:
    """The results of tools in a conversation, whatever the language."""
    found = []
    for turn in objects([body.get("messages"), body.get("input"), body.get("contents")]):
        if turn.get("role") == "tool":
            found.append(text_of(turn.get("content")))
        elif turn.get("type") in ("function_call_output", "custom_tool_call_output"):
            found.append(text_of(turn.get("output")))
        elif turn.get("type") == "tool_result":
            found.append(text_of(turn.get("content")))
        elif "functionResponse" in turn:
            found.append(text_of(turn["functionResponse"].get("response")))
        elif turn.get("role") == "user":
            found += RETOLD.split(text_of(turn.get("content")))[1:]
    return found


def text_of(content) -> str:
    """A result as the model reads it: its text, or the JSON that stands in its place."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in content):
        return "\n".join(one["text"] for one in content)
    return json.dumps(content, ensure_ascii=False)


def next_call(body: dict, script) -> dict | None:
    """The tool whose turn it is, by the name under which the agent offers it; none, if it does not."""
    turn = len(results(body))
    # Some agents take a last word from a tool only.
    wanted, given = (script[turn], {}) if turn < len(script) else ("final_answer", {"answer": LAST_WORD})
    for space, name in offered(body.get("tools") or []):
        if name == wanted or name.endswith(("_" + wanted, "." + wanted, "-" + wanted)):
            return {"name": name, "space": space, "id": f"call_{turn}", "given": given}
    return None


def offered(tools, space=None):
    """The tools on offer, with the namespace that each is in."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from offered(tool.get("tools") or [], tool.get("name"))
        elif "functionDeclarations" in tool:
            yield from offered(tool["functionDeclarations"], space)
        else:
            name = tool.get("name") or (tool.get("function") or {}).get("name")
            if name:
                yield space, name


def sse(data, event=None) -> str:
    head = f"event: {event}\n" if event else ""
    return head + "data: " + (data if isinstance(data, str) else json.dumps(data)) + "\n\n"


def chat(call):
    """OpenAI, chat completions."""
    message, why = {"role": "assistant", "content": LAST_WORD}, "stop"
    if call:
        function = {"name": call["name"], "arguments": json.dumps(call["given"])}
        tool_call = {"id": call["id"], "index": 0, "type": "function", "function": function}
        message, why = {"role": "assistant", "content": None, "tool_calls": [tool_call]}, "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    base = {"id": "c", "created": 1, "model": "scripted", "usage": usage}
    whole = base | {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": why}]}
    piece = base | {"object": "chat.completion.chunk"}
    events = [
        sse(piece | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
        sse(piece | {"choices": [{"index": 0, "delta": {}, "finish_reason": why}]}),
        sse("[DONE]"),
    ]
    return whole, events


def responses(call):
    """OpenAI, Responses."""
    if call:
        item = {"type": "function_call", "id": "fc", "call_id": call["id"], "name": call["name"], "arguments": json.dumps(call["given"])}
        item |= {"namespace": call["space"]} if call["space"] else {}
    else:
        part = {"type": "output_text", "text": LAST_WORD, "annotations": []}
        item = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    item["status"] = "completed"
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2} | details
    base = {"id": "r", "object": "response", "created_at": 1, "model": "scripted"}
    base |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}
    whole = base | {"status": "completed", "output": [item], "usage": usage}
    steps = [
        {"type": "response.created", "response": base | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, [sse(step | {"sequence_number": n}, step["type"]) for n, step in enumerate(steps)]


def messages(call):
    """Anthropic, messages."""
    if call:
        block, why = {"type": "tool_use", "id": "toolu_" + call["id"], "name": call["name"], "input": call["given"]}, "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call["given"])}
        empty = block | {"input": {}}
    else:
        block, why = {"type": "text", "text": LAST_WORD}, "end_turn"
        delta = {"type": "text_delta", "text": LAST_WORD}
        empty = {"type": "text", "text": ""}
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": [block]}
    whole |= {"stop_reason": why, "stop_sequence": None, "usage": usage}
    steps = [
        {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return whole, [sse(step, step["type"]) for step in steps]


def gemini(call):
    """Google, generateContent."""
    part = {"functionCall": {"name": call["name"], "args": call["given"]}} if call else {"text": LAST_WORD}
    whole = {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "scripted",
    }
    return whole, [sse(whole)]


LANGUAGES = {
    "/chat/completions": chat,
    "/responses": responses,
    "/messages": messages,
    ":generateContent": gemini,
    ":streamGenerateContent": gemini,
}
