"""A target of OpenAPI routes with no supervision at all: a POST for each tool, and only what a tool declares is passed on."""

import json
import subprocess
import sys
import threading
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, command = int(sys.argv[1]), sys.argv[2:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lock = threading.Lock()
waiting = {}


def say(message):
    server.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    server.stdin.flush()


def ask(method, params):
    with lock:
        id = len(waiting) + 1
        waiting[id] = Future()
        say({"id": id, "method": method, "params": params})
    return waiting[id].result()


def answers():
    for line in server.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if message.get("id") in waiting:
            waiting[message["id"]].set_result(message["result"])
    for future in waiting.values():
        if not future.done():
            future.set_exception(EOFError("Connection closed"))


class Routes(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, {"openapi": "3.1.0", "paths": {f"/{name}": {} for name in takes}})

    def do_POST(self):
        tool = self.path.strip("/")
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        args = {name: value for name, value in body.items() if name in takes[tool]}
        try:
            self.reply(200, ask("tools/call", {"name": tool, "arguments": args}))
        except (EOFError, BrokenPipeError) as error:
            self.reply(500, {"detail": {"message": str(error)}})

    def reply(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


threading.Thread(target=answers, daemon=True).start()
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "routes", "version": "1"}}
ask("initialize", hello)
say({"method": "notifications/initialized"})
takes = {tool["name"]: tool["inputSchema"].get("properties", {}) for tool in ask("tools/list", {})["tools"]}
ThreadingHTTPServer(("127.0.0.1", port), Routes).serve_forever()
