"""An agent on the pipes of a program, by hand."""

import json
import subprocess


class Agent:
    def __init__(self, command, cwd=None):
        self.program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=cwd
        )
        self.last = 0

    def send(self, message):
        self.program.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.program.stdin.flush()

    def ask(self, method, params=None):
        self.last += 1
        number = self.last
        self.send({"id": number, "method": method, "params": params or {}})
        while True:
            line = self.program.stdout.readline()
            if not line:
                raise SystemExit(f"{method}: the pipe was closed")
            message = json.loads(line)
            # A server may ask for roots: there are none.
            if message.get("method") and "id" in message:
                self.send({"id": message["id"], "result": {"roots": []}})
            elif message.get("id") == number:
                return message

    def greet(self):
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "measure", "version": "1"}}
        answer = self.ask("initialize", hello)
        self.send({"method": "notifications/initialized"})
        return answer

    def leave(self):
        self.program.stdin.close()
        self.program.wait()
