"""Where the reaper is: the small program that the wheel carries."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


@cache
def reaper() -> str:
    """The path of the program that each server process runs under.

    It is always named. Without it no server is started; in particular no other program is ever started in its place, least
    of all the interpreter that runs this.
    """
    path = Path(__file__).resolve().parent / "_bin" / "linetender-reaper"
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"{path} is missing or cannot be executed: install linetender from a wheel")
    return str(path)
