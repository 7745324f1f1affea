"""A server that starts processes. Each of them writes down its own number and whose it is: the judge reads that, and nothing else.

server.py LEDGER WHAT...: starts these at once (`late` at its end, `lingering` at each line), answers each line of stdin, and ends at end of file.
server.py be WHOSE LEDGER [LOCK]: is one of them; with a lock, it lets go of it after SIGTERM, by a program that takes half a second.
"""
import os, signal, subprocess, sys, time


def be(whose, ledger, lock=None):
    if lock:
        open(lock, "w").close()

        def unlock(*_):
            subprocess.run(["sh", "-c", 'sleep 0.5; rm "$1"', "sh", lock])
            os._exit(0)

        signal.signal(signal.SIGTERM, unlock)
    with open(ledger, "a") as out:
        out.write(f"{whose} {os.getpid()}\n")
    while True:
        signal.pause()


def forked(leave, work):
    """In a process whose parent is gone if `leave`: as daemon(3) has it."""
    pid = os.fork()
    if pid:
        if leave:
            os.waitpid(pid, 0)
        return
    if leave and os.fork():
        os._exit(0)
    work()
    os._exit(0)


def null(*fds):
    for fd in fds:
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)


def start(what, ledger):
    def daemon():
        os.setsid()
        null(0, 1, 2)
        be("user", ledger)

    def multiplexer():  # keeps its stderr, and has a session of the user's below it
        os.setsid()
        null(0, 1)
        forked(False, lambda: be("user", ledger))
        be("user", ledger)

    def holds_stdout():
        os.setsid()
        null(0, 2)
        be("server", ledger)

    def session_child():  # as browsers are started: apart, but nobody let go of it
        os.setsid()
        null(0, 1, 2)
        be("server", ledger)

    def orphan():  # lost its parent, and did nothing to leave
        null(0, 1, 2)
        be("server", ledger)

    def stubborn():  # apart from the group, and deaf to SIGTERM
        os.setsid()
        null(0, 1, 2)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        be("server", ledger)

    def lingering():  # is at the server's pipes for a moment after the answer
        time.sleep(0.15)
        daemon()

    def run(command):
        subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    me = f"{sys.executable} {os.path.abspath(__file__)} be"
    if what == "daemon":
        forked(True, daemon)
    elif what == "multiplexer":
        forked(True, multiplexer)
    elif what == "lingering":
        forked(True, lingering)
    elif what == "stubborn":
        forked(False, stubborn)
    elif what == "nohup_setsid":
        run(f"nohup setsid {me} user {ledger} >/dev/null 2>&1 &")
    elif what == "nohup":
        run(f"nohup {me} user {ledger} >/dev/null 2>&1 &")
    elif what == "holds_stdout":
        forked(True, holds_stdout)
    elif what == "session_child":
        forked(False, session_child)
    elif what == "orphan":
        forked(True, orphan)
    elif what == "worker":
        forked(False, lambda: be("server", ledger, ledger + ".lock"))
    elif what == "late":
        forked(True, lambda: (os.setsid(), null(0, 1, 2), be("server", ledger)))


def main():
    if sys.argv[1] == "be":
        be(*sys.argv[2:])
    ledger, late = sys.argv[1], "late" in sys.argv
    for what in sys.argv[2:]:
        if what not in ("late", "lingering"):
            start(what, ledger)
    print("up", flush=True)
    for line in sys.stdin:
        if "lingering" in sys.argv:
            start("lingering", ledger)
        print(line.strip(), flush=True)
    if late:
        start("late", ledger)


main()
