"""The agents: one that speaks stdio, one that speaks Streamable HTTP. Both speak MCP 2025-06-18, the revision that most agents have."""

import http.client
import json
import queue
import signal
import subprocess
import threading
import time

VERSION = "2025-06-18"
EOF = {"eof": True}
TIMEOUT = {"timeout": True}
WHO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "harmless", "version": "1"}}
# How agents end a server: seconds after the beginning, and what they do. `sdk`: the official SDKs. `claude`: Claude Code.
LADDERS = {
    "sdk": [(0, "EOF"), (2, signal.SIGTERM), (4, signal.SIGKILL)],
    "claude": [(0, signal.SIGINT), (0.1, signal.SIGTERM), (0.5, signal.SIGKILL)],
}


class Heard:
    """What came through one pair of pipes. The next pair has its own: the end of the last one may be noticed late."""

    def __init__(self):
        self.answers, self.news, self.over = {}, threading.Condition(), False


class Stdio:
    """An agent that has started `argv` and speaks to it through pipes."""

    def __init__(self, argv, cwd, env, stderr):
        self.argv, self.cwd, self.env, self.stderr = argv, cwd, env, stderr
        self.open()

    def open(self):
        with open(self.stderr, "ab") as err:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, cwd=self.cwd, env=self.env
            )
        self.next, self.heard = 0, Heard()
        threading.Thread(target=self._read, args=(self.process.stdout, self.heard), daemon=True).start()

    def _read(self, pipe, heard):
        for line in pipe:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" in message and "id" in message:
                self._answer(message)
            elif "id" in message:
                with heard.news:
                    heard.answers[message["id"]] = message
                    heard.news.notify_all()
        with heard.news:
            heard.over = True
            heard.news.notify_all()

    def _answer(self, question):
        answer = {"result": {}} if question["method"] == "ping" else {"error": {"code": -32601, "message": "not offered"}}
        self._send({"jsonrpc": "2.0", "id": question["id"], **answer})

    def _send(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # the reader sees the end

    def post(self, method, params=None):
        """Sends a request and returns its id."""
        self.next += 1
        self._send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params or {}})
        return self.next

    def wait(self, number, timeout):
        heard = self.heard
        with heard.news:
            heard.news.wait_for(lambda: number in heard.answers or heard.over, timeout)
            return heard.answers.get(number) or (EOF if heard.over else TIMEOUT)

    def request(self, method, params=None, timeout=60):
        return self.wait(self.post(method, params), timeout)

    def greet(self, timeout=60):
        answer = self.request("initialize", WHO, timeout)
        if "result" in answer:
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def close(self, ladder):
        """Ends the server as an agent does, and returns after how many seconds the process that the agent started was gone."""
        began = time.monotonic()
        for at, what in LADDERS[ladder]:
            try:
                self.process.wait(max(0.0, began + at - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                pass
            self._end_input() if what == "EOF" else self.process.send_signal(what)
        self.process.wait(10)
        self._end_input()
        return time.monotonic() - began

    def _end_input(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass


class Http:
    """An agent with a session at the address of a gateway."""

    def __init__(self, port, path):
        self.port, self.path, self.session, self.next, self.pending = port, path, None, 0, {}

    def _exchange(self, message, timeout, method="POST"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        try:
            connection.request(method, self.path, json.dumps(message) if message else None, headers)
            response = connection.getresponse()
            self.session = response.getheader("Mcp-Session-Id") or self.session
            if "id" not in (message or {}):
                response.read()
                return {}
            if response.status >= 400:
                return {
                    "error": {
                        "code": response.status,
                        "message": f"HTTP {response.status}: {response.read(2000).decode('utf-8', 'replace')}",
                    }
                }
            if "event-stream" not in (response.getheader("Content-Type") or ""):
                return json.loads(response.read())
            for line in response:
                if line.startswith(b"data:") and line[5:].strip():
                    heard = json.loads(line[5:])
                    if heard.get("id") == message["id"] and "method" not in heard:
                        return heard
            return EOF
        except TimeoutError:
            return TIMEOUT
        except (OSError, http.client.HTTPException):
            return EOF
        finally:
            connection.close()

    def request(self, method, params=None, timeout=60):
        self.next += 1
        return self._exchange({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params or {}}, timeout)

    def post(self, method, params=None):
        answer = queue.Queue()
        self.next += 1
        number, message = self.next, {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params or {}}
        self.pending[number] = answer
        threading.Thread(target=lambda: answer.put(self._exchange(message, 60)), daemon=True).start()
        time.sleep(0.02)  # this agent sends in order: requests that cross on two connections have none
        return number

    def wait(self, number, timeout):
        try:
            return self.pending.pop(number).get(timeout=timeout)
        except queue.Empty:
            return TIMEOUT

    def greet(self, timeout=60):
        answer = self.request("initialize", WHO, timeout)
        if "result" in answer:
            self._exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, timeout)
        return answer

    def close(self, _ladder):
        began = time.monotonic()
        if self.session:
            self._exchange(None, 10, "DELETE")
        return time.monotonic() - began
