"""The processes that are measured: `linetender serve`, and the test servers behind it."""
import atexit
import http.client
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 600  # seconds; longer than anything here should take
CALM = 4  # seconds without a change of memory or descriptors: at rest; idle connections to servers are kept for 3
UP = re.compile(rb'server up server="([^"]+)" generation=(\d+)')


def descriptors():
    """As many descriptors as this user may have: each agent is one, and so is each line."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class Servers:
    """A few processes of `badserver`, each the server of many lines."""

    def __init__(self, binary, processes, era):
        self.binary, self.era = binary, era
        self.running, self.ports = [], []
        atexit.register(self.kill)
        for _ in range(processes):
            self.ports.append(self.start(0))

    def start(self, port):
        process = subprocess.Popen([self.binary, "--http", str(port), "--era", self.era], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        said = process.stdout.readline()
        if not said.startswith("listening on "):
            raise RuntimeError(f"a test server does not listen on port {port}")
        self.running.append(process)
        return int(said.rsplit(":", 1)[1].split("/")[0])

    def url(self, number):
        return f"http://127.0.0.1:{self.ports[number % len(self.ports)]}/mcp"

    def kill(self):
        for process in self.running:
            process.send_signal(signal.SIGKILL)
        for process in self.running:
            process.wait()
            process.stdout.close()
        self.running = []

    def again(self):
        """On the same ports."""
        for port in self.ports:
            self.start(port)


class Gateway:
    """`linetender serve` with so many servers over HTTP, in a folder of its own."""

    def __init__(self, binary, servers, lines, sessions=1000, connections=4096, keepalive=None):
        self.lines = lines
        self.home = tempfile.mkdtemp(prefix="linetender-scale-")
        config, self.log = os.path.join(self.home, "linetender.toml"), os.path.join(self.home, "log")
        with open(config, "w") as file:
            # One user has at most seven eighths of all sessions, and an eighth of `memory` is for sessions, 64 KiB each: without the setting
            # it is a quarter of the machine's, so 10,000 sessions of one user need a machine with 23 GiB.
            file.write(f'[gateway]\nsocket = "off"\nlines = {lines + 16}\nsessions = {2 * sessions}\nconnections = {connections}\n')
            file.write(f'session_idle = "24h"\nprincipal_requests = {connections + 1024}\n')
            for number in range(lines):
                file.write(f'[servers.s{number}]\nurl = "{servers.url(number)}"\n')
                if keepalive:
                    file.write(f'keepalive = "{keepalive}"\n')
        environment = dict(os.environ, XDG_STATE_HOME=self.home, XDG_RUNTIME_DIR=self.home, XDG_CACHE_HOME=self.home)
        self.began = time.monotonic()
        self.process = subprocess.Popen([binary, "serve", "--config", config, "--listen", "127.0.0.1:0", "--log", self.log],
                                        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        atexit.register(self.close)
        self.pid = self.process.pid
        self.clock = (~self.pid << 3) | 2  # clock_getcpuclockid(3)
        self.read_log, self.generations = 0, {}
        self.port = None
        self.until("it does not listen", self.listens)

    def until(self, words, condition, every=0.2):
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                raise RuntimeError(f"the gateway ended: {self.process.stderr.read().decode()[-2000:]}")
            if time.monotonic() > end:
                raise TimeoutError(words)
            time.sleep(every)

    def listens(self):
        text = open(self.log).read() if os.path.exists(self.log) else ""
        self.port = text.partition("serving address=http://127.0.0.1:")[2].partition("/mcp")[0]
        return bool(self.port)

    def generation_of_each(self):
        """The newest generation of each line that came up, by the log: reading it costs the gateway nothing."""
        with open(self.log, "rb") as file:
            file.seek(self.read_log)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self.read_log += whole
        for name, generation in UP.findall(text[:whole]):
            self.generations[name] = int(generation)
        return self.generations

    def states(self):
        """How many lines are in each state, as the gateway says."""
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=60)
        connection.request("GET", "/readyz")
        servers = json.loads(connection.getresponse().read())["servers"]
        connection.close()
        counts = {}
        for state in servers.values():
            counts[state] = counts.get(state, 0) + 1
        return counts

    def all_up(self, generation=1, told=lambda up: None):
        """Waits until every line is in this generation or a later one; the seconds since then."""
        def count():
            return sum(now >= generation for now in self.generation_of_each().values())

        def up():
            told(count())
            return count() >= self.lines
        self.until("some lines do not come up", up)
        self.until("some lines do not stay up", lambda: self.states().get("up") == self.lines, every=0.5)

    def cpu(self):
        """Seconds of processor time, of threads that have ended too."""
        return time.clock_gettime(self.clock)

    def status(self):
        with open(f"/proc/{self.pid}/status") as file:
            return dict(line.split(":", 1) for line in file)

    def wakeups(self):
        """How often its threads went to sleep by themselves, and so were woken up again."""
        total = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/status") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary"))
        return total

    def memory(self):
        """KiB that are resident now, and at most so far."""
        status = self.status()
        return tuple(int(status[name].split()[0]) for name in ("VmRSS", "VmHWM"))

    def forget_peak(self):
        """The most that was resident counts from now on."""
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")

    def rested(self):
        """What it holds once its memory and descriptors do not change any more."""
        calm, before, end = 0, None, time.monotonic() + 60
        while calm < CALM and time.monotonic() < end:
            time.sleep(1)
            now = (self.memory()[0] // 1024, len(os.listdir(f"/proc/{self.pid}/fd")) // 64)
            calm, before = (calm + 1 if now == before else 0), now
        return self.held()

    def held(self):
        status = self.status()
        return {"rss_kib": self.memory()[0], "threads": int(status["Threads"]),
                "descriptors": len(os.listdir(f"/proc/{self.pid}/fd"))}

    def idle(self, seconds):
        """Share of a core, and wake-ups in a second, while nobody says anything."""
        cpu, wakeups, began = self.cpu(), self.wakeups(), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return {"idle_cpu": round((self.cpu() - cpu) / took, 5), "wakeups_per_second": round((self.wakeups() - wakeups) / took, 2),
                "window_seconds": round(took, 1)}

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        shutil.rmtree(self.home, ignore_errors=True)
