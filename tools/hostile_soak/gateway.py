"""One `linetender serve` with good and hostile servers, and what it takes of the machine."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
START = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Gateway:
    def __init__(self, name, binary, folder, mix):
        self.name, self.binary, self.mix, self.port = name, binary, mix, free_port()
        self.folder = os.path.join(folder, name)
        os.makedirs(os.path.join(self.folder, "etc"))
        self.switch, self.config = os.path.join(self.folder, "hostile"), os.path.join(self.folder, "etc", "linetender.toml")
        self.good = [f"good{number + 1}" for number in range(mix["good"]["servers"])]
        self.process = None
        # Of the process that runs, and the highest of those before it.
        self.highest, self.spent = 0, 0.0
        with open(self.config, "w") as file:
            file.write(self.text())

    def book(self, server):
        return os.path.join(self.folder, server + ".book")

    def text(self):
        parts = ["[gateway]", f'listen = "127.0.0.1:{self.port}"']
        parts += [f"{key} = {json.dumps(value)}" for key, value in self.mix["gateway"].items()]
        for number, server in enumerate(self.good):
            args = ["__badserver", "--era", ("legacy", "modern")[number // 2 % 2], "--book", self.book(server)]
            parts += [f"[servers.{server}]", f"command = {json.dumps(self.binary)}", f"args = {json.dumps(args)}"]
        for server, how in self.mix["servers"].items():
            args = [os.path.join(HERE, "server.py"), self.switch, *how["modes"]]
            parts += [f"[servers.{server}]", f"command = {json.dumps(sys.executable)}", f"args = {json.dumps(args)}", how.get("config", "")]
        return "\n".join(parts) + "\n"

    def start(self):
        env = {"PATH": os.environ["PATH"], "HOME": self.folder}
        env.update({name: self.folder for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME")})
        with open(os.path.join(self.folder, "stderr"), "ab") as stderr:
            self.process = subprocess.Popen([self.binary, "serve", "--config", self.config, "--log", os.path.join(self.folder, "log")],
                                            stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env=env)
        until = time.monotonic() + START
        waiting = list(self.good)
        while waiting:
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"gateway {self.name} does not serve {waiting}: see {self.folder}")
            if self.answers(waiting[0]):
                waiting.pop(0)
            else:
                time.sleep(0.1)

    def answers(self, server):
        """Whether a ping at a good server's own address is answered."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}, "_meta": meta}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
        try:
            connection.request("POST", "/mcp/" + server, json.dumps(body), headers)
            return b'"result"' in connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def attacked(self, is_it):
        """Its servers are hostile from now on, or not."""
        if is_it:
            open(self.switch, "w").close()
        elif os.path.exists(self.switch):
            os.remove(self.switch)

    def resident(self, which="VmRSS"):
        """Bytes; zero if it does not run."""
        try:
            with open(f"/proc/{self.process.pid}/status") as status:
                found = [line.split()[1] for line in status if line.startswith(which + ":")]
            return int(found[0]) * 1024 if found else 0
        except OSError:
            return 0

    def processor(self):
        """Seconds of the process, all of its lives together."""
        return self.spent + spent([self.process.pid])

    def servers(self):
        """Seconds of the servers that run now, and of the reapers above them."""
        return spent(pid for pid, _ in descendants(self.process.pid))

    def peak(self):
        return max(self.highest, self.resident("VmHWM"))

    def stop(self, bound):
        """SIGTERM: how long it took, how it ended, and which of its servers are still there."""
        self.highest, self.spent = self.peak(), self.processor()
        tree = descendants(self.process.pid)
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(bound)
        except subprocess.TimeoutExpired:
            code = None
            self.process.kill()
            self.process.wait()
        took = time.monotonic() - begun
        until = time.monotonic() + 2
        while (left := [pid for pid, born in tree if birth(pid) == born]) and time.monotonic() < until:
            time.sleep(0.05)
        return {"seconds": took, "code": code, "late": code is None, "processes_left": [command(pid) for pid in left]}

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Watch(threading.Thread):
    """Looks at the memory of gateways all the time: the peak since it was last asked."""

    def __init__(self, gateways):
        super().__init__(daemon=True)
        self.gateways, self.peaks = gateways, {}
        self.start()

    def run(self):
        while True:
            for gateway in self.gateways:
                if gateway.process:
                    self.peaks[gateway.name] = max(self.peaks.get(gateway.name, 0), gateway.resident())
            time.sleep(0.05)

    def take(self):
        peaks, self.peaks = self.peaks, {}
        return peaks


def stat(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def spent(pids):
    """Seconds of processor time of these processes, and of their children that have ended."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := stat(pid))) / TICKS


def birth(pid):
    fields = stat(pid)
    return None if fields is None or fields[0] == "Z" else fields[19]


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return f"{pid} " + file.read().replace(b"\0", b" ").decode(errors="replace").strip()[-120:]
    except OSError:
        return str(pid)


def descendants(root):
    """Each process below this one, with the time of its birth."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat(name)):
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        for pid in parents.get(waiting.pop(), []):
            found.append((pid, birth(pid)))
            waiting.append(pid)
    return [(pid, born) for pid, born in found if born]


def machine():
    """Seconds of processor time of the whole machine, other programs and what its host took included."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS
