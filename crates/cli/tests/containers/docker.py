"""A stand-in for docker, whose containers live in its daemon and not below its client, and an MCP server to put into one.

    docker.py daemon FOLDER           serves FOLDER/docker.sock; ends when its stdin is closed
    docker.py client FOLDER WORDS…    docker run|kill|rm|wait|ps WORDS…
    docker.py server                  an MCP server that does not end when its input does

It does what docker does where that matters: a container is created, its id written to --cidfile, and only then it is started; a
name is in use until the container is removed; --rm removes it a while after its end. `ps` says what runs and how many ran at once
at most. What is in FOLDER changes it: `refuse-kill`, `no-cidfile`. Each client's words are a line of FOLDER/words.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

REMOVED_AFTER = 0.3
# Nothing here outlives a test that was killed.
LONGEST = 180


class Daemon:
    def __init__(self, folder):
        self.folder, self.lock = folder, threading.Condition()
        self.containers, self.most = {}, 0

    def serve(self, connection):
        lines = connection.makefile("rb", 0)
        asked = json.loads(lines.readline())
        answer = getattr(self, asked.pop("do"))(connection=connection, **asked)
        if answer is not None:
            connection.sendall(json.dumps(answer).encode() + b"\n")
            connection.close()

    def find(self, id):
        found = [key for key in self.containers if key.startswith(id)]
        return self.containers[found[0]] if found else None

    def create(self, connection, name, rm, argv):
        with self.lock:
            for other in self.containers.values():
                if name and other["name"] == name:
                    error = f'Conflict. The container name "/{name}" is already in use by container "{other["id"]}".'
                    return {"error": error + " You have to remove (or rename) that container to be able to reuse that name."}
            id = secrets.token_hex(32)
            self.containers[id] = {"id": id, "name": name, "rm": rm, "argv": argv, "state": "created"}
            return {"id": id}

    def start(self, connection, id):
        with self.lock:
            container = self.find(id)
            pipe = subprocess.PIPE
            process = subprocess.Popen(container["argv"], stdin=pipe, stdout=pipe, start_new_session=True)
            container.update(state="running", process=process)
            self.most = max(self.most, len(self.running()))
        threading.Thread(target=self.follow, args=(container,), daemon=True).start()
        threading.Thread(target=self.down, args=(connection, process), daemon=True).start()
        while piece := os.read(process.stdout.fileno(), 65536):
            try:
                connection.sendall(piece)
            except OSError:
                return
        try:
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def down(self, connection, process):
        try:
            while piece := connection.recv(65536):
                process.stdin.write(piece)
                process.stdin.flush()
        except OSError:
            pass
        try:
            process.stdin.close()
        except OSError:
            pass

    def follow(self, container):
        container["process"].wait()
        with self.lock:
            container["state"] = "exited"
            self.lock.notify_all()
        if container["rm"]:
            time.sleep(REMOVED_AFTER)
            with self.lock:
                self.containers.pop(container["id"], None)

    def running(self):
        return [each for each in self.containers.values() if each["state"] == "running"]

    def kill(self, connection, id):
        with self.lock:
            container = self.find(id)
            if not container:
                return {"error": f"cannot kill container: {id}: No such container: {id}"}
            if os.path.exists(f"{self.folder}/refuse-kill"):
                return {"error": f"cannot kill container: {id}: permission denied"}
            if container["state"] != "running":
                return {"error": f"cannot kill container: {id}: container {id} is not running"}
            os.killpg(container["process"].pid, signal.SIGKILL)
            self.lock.wait_for(lambda: container["state"] != "running")
            return {}

    def rm(self, connection, id):
        with self.lock:
            container = self.find(id)
            if not container:
                return {"error": f"No such container: {id}"}
            if container["rm"] and container["state"] == "exited":
                return {"error": f"removal of container {id} is already in progress"}
            self.containers.pop(container["id"])
            return {}

    def wait(self, connection, id):
        with self.lock:
            container = self.find(id)
            if not container:
                return {"error": f"No such container: {id}"}
            self.lock.wait_for(lambda: container["state"] != "running")
            return {}

    def ps(self, connection):
        with self.lock:
            running = [{"id": each["id"], "pid": each["process"].pid} for each in self.running()]
            return {"out": json.dumps({"running": running, "all": len(self.containers), "most": self.most})}


def daemon(folder):
    serves = Daemon(folder)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/docker.sock")
    listener.listen(50)

    def accept():
        while True:
            threading.Thread(target=serves.serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    for each in serves.running():
        os.killpg(each["process"].pid, signal.SIGKILL)


def ask(folder, **asked):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{folder}/docker.sock")
    connection.sendall(json.dumps(asked).encode() + b"\n")
    return connection


def answered(connection):
    answer = json.loads(connection.makefile("rb", 0).readline())
    if "error" in answer:
        sys.stderr.write(f"docker: Error response from daemon: {answer['error']}\n")
        sys.exit(125 if sys.argv[3] == "run" else 1)
    return answer


def client(folder, words):
    with open(f"{folder}/words", "a") as log:
        log.write(" ".join(words) + "\n")
    command, rest = words[0], words[1:]
    if command != "run":
        id = [word for word in rest if not word.startswith("-")]
        answer = answered(ask(folder, do=command, **({"id": id[0]} if id else {})))
        print(answer.get("out", id and id[0]))
        return
    name, cidfile, rm, detach = None, None, False, False
    while rest[0].startswith("-"):
        flag = rest.pop(0)
        rm, detach = rm or flag == "--rm", detach or flag in ("-d", "-id", "--detach")
        name = rest.pop(0) if flag == "--name" else name
        cidfile = rest.pop(0) if flag == "--cidfile" else cidfile
    # The image comes first: here it has no meaning.
    file = None
    if cidfile:
        if os.path.exists(f"{folder}/no-cidfile") or os.path.exists(cidfile):
            sys.stderr.write(f"docker: failed to create the container ID file: open {cidfile}: no such file or directory\n")
            sys.exit(125)
        file = open(cidfile, "w")
    id = answered(ask(folder, do="create", name=name, rm=rm, argv=rest[1:]))["id"]
    if file:
        file.write(id)
        file.close()
    connection = ask(folder, do="start", id=id)
    if detach:
        print(id, flush=True)
        return

    def down():
        while piece := os.read(0, 65536):
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=down, daemon=True).start()
    while piece := connection.recv(65536):
        os.write(1, piece)


def server():
    signal.alarm(LONGEST)
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        method, result = message.get("method"), None
        if method == "initialize":
            info = {"name": "contained", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": [{"name": "pid", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": str(os.getpid())}]}
        elif method == "ping":
            result = {}
        if "id" in message:
            answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
    time.sleep(LONGEST)


if sys.argv[1] == "daemon":
    daemon(sys.argv[2])
elif sys.argv[1] == "client":
    client(sys.argv[2], sys.argv[3:])
else:
    server()
