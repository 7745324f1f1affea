"""Process ids with start times: an id alone may be another process's by now."""

import os


def stat(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def started(pid):
    return int(stat(pid)[19])


def alive(pid, since):
    """True if this process lives: it has not been reaped, and is no zombie."""
    try:
        fields = stat(pid)
    except OSError:
        return False
    return fields[0] not in "ZX" and int(fields[19]) == since


def send(pid, number):
    """Sends a signal to a process that may just have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def children(above):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(stat(name)[1]) == above:
                found.append(int(name))
        except OSError:
            pass  # it is gone
    return found
