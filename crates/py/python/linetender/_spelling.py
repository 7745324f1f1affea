"""JSON of servers, which may hold anything."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes) -> Any:
    """What this text means. A number with more digits than Python reads is the nearest float: it is no reason to lose the rest."""
    try:
        return json.loads(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        return json.loads(text, parse_int=_number)


def _number(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)
