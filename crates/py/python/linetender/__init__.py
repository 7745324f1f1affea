"""Supervised connections to MCP servers: they notice when a server crashes or hangs, and restart it.

A :class:`Line` is a connection to one server. When the server dies, the line ends the calls that were under way with an error
that says why and whether it ran, and starts the server again. What may have run is not sent again without permission.
"""

from ._errors import (
    BadAnswer,
    CallRefused,
    CallTimeout,
    ConfigError,
    ContextReplaced,
    ErrorAnswer,
    LineDown,
    LinetenderError,
    NeedsAuth,
    OutcomeUnknown,
    ServerRefused,
)
from ._line import Answer, Event, EventsMissed, Line, ListChanged, State, StateChanged, Status
from ._loop import ProgressCallback
from ._native import __version__
from ._rig import Rig, RigChange
from ._server import Server
from ._session import session

__all__ = [
    "Answer",
    "BadAnswer",
    "CallRefused",
    "CallTimeout",
    "ConfigError",
    "ContextReplaced",
    "ErrorAnswer",
    "Event",
    "EventsMissed",
    "Line",
    "LineDown",
    "LinetenderError",
    "ListChanged",
    "NeedsAuth",
    "OutcomeUnknown",
    "ProgressCallback",
    "Rig",
    "RigChange",
    "Server",
    "ServerRefused",
    "State",
    "StateChanged",
    "Status",
    "__version__",
    "session",
]
