"""What a failed call says."""

from __future__ import annotations

from typing import Any

from ._spelling import loads


class LinetenderError(Exception):
    """A call has no result. Every error says five things: server, phase, cause, delivery, next try.

    ``delivery`` is what to look at before a call is repeated: ``"not executed"`` is what linetender counted itself, and
    a repeated call runs once; ``"refused"`` is the server's word, which linetender cannot check: the call may have run; ``"unknown"``
    means that it may have run; ``"answered"`` means that the server answered.
    """

    def __init__(self, text: str = "", **fields: Any) -> None:
        super().__init__(text)
        self._fields = fields
        #: The server's name.
        self.server: str = fields.get("server", "")
        #: What kind of failure it is: ``"lost"``, ``"timed-out"``, ``"overloaded"``, ...
        self.kind: str = fields.get("kind", "")
        #: How far the call had got: ``"before sending"``, ``"at the server"``, ``"in linetender"`` or ``"answered"``.
        self.phase: str = fields.get("phase", "")
        #: What happened, in words.
        self.cause: str = fields.get("cause", "")
        #: Whether the call was executed: ``"not executed"``, ``"refused"``, ``"unknown"`` or ``"answered"``.
        self.delivery: str = fields.get("delivery", "")
        #: What that rests on: ``"not-sent"``, ``"rate-limited"``, ``"connection-lost"``, ... ``None`` if the server answered.
        self.reason: str | None = fields.get("reason")
        #: How often linetender sent the call.
        self.attempts: int = fields.get("attempts", 0)
        #: When linetender tries the server next, in words: ``"now"``, ``"in 2.5 s"``, ``"never"``, ...
        self.next_try: str = fields.get("next_try", "")
        #: The same in seconds, if it is a matter of time.
        self.next_try_in: float | None = fields.get("next_try_in")
        #: The last lines of the server's stderr, if they explain something.
        self.stderr: str | None = fields.get("stderr")

    @property
    def not_executed(self) -> bool:
        """Whether linetender counted that the call did not run: a repeated call runs once."""
        return self.delivery == "not executed"

    def for_model(self) -> str:
        """Text that a model can act on."""
        return str(self._fields.get("for_model", self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self.args, self._fields))


class LineDown(LinetenderError):
    """The server does not take calls now. The call was not executed; linetender brings the server back by itself."""


class ContextReplaced(LinetenderError):
    """The server was replaced, and what it kept in memory is gone. Set up what the call needs, and call again.

    The call was not executed. If ``delivery`` is ``"refused"``, that is the server's word.
    """


class CallRefused(LinetenderError):
    """linetender refused the call: too many wait already, it cannot be sent, or the server does not offer it any more."""


class ServerRefused(LinetenderError):
    """The server, or a proxy before it, refused the call, which may have run all the same.

    ``reason`` has the refusal: ``"rate-limited"``, ``"session-lost"``, ``"too-large"``, ... It says that the call was not
    executed, and linetender cannot check that: check for its effects before you repeat it.
    """


class OutcomeUnknown(LinetenderError):
    """The connection ended under the call, which may have run. Check for its effects before you repeat it."""


class CallTimeout(LinetenderError, TimeoutError):
    """The call's time was up. The server may still be alive: linetender looks."""


class NeedsAuth(LinetenderError):
    """The server wants credentials that it was not given."""


class BadAnswer(LinetenderError):
    """The server processed the call, and its answer cannot be passed on."""


class ErrorAnswer(LinetenderError):
    """The server answered with a JSON-RPC error."""

    def _answered(self) -> dict[str, Any]:
        answered = loads(self._fields.get("answered") or "{}")
        return answered if isinstance(answered, dict) else {}

    @property
    def code(self) -> int | None:
        """The error's code; ``None`` if it has none that is a whole number."""
        code = self._answered().get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def message(self) -> str:
        """The error's message."""
        return str(self._answered().get("message", ""))

    @property
    def data(self) -> Any:
        """What else the server says of it."""
        return self._answered().get("data")


class ConfigError(ValueError):
    """A config file, or what was said of a server, cannot be used."""


_CLASSES: dict[str, type[LinetenderError]] = {
    of.__name__: of
    for of in (
        LineDown,
        ContextReplaced,
        CallRefused,
        ServerRefused,
        OutcomeUnknown,
        CallTimeout,
        NeedsAuth,
        BadAnswer,
        ErrorAnswer,
    )
}


def of_fields(fields: dict[str, Any]) -> LinetenderError:
    """The exception for what the native half says of a failure."""
    kind, text = fields.pop("exception"), fields.pop("text")
    return _CLASSES[kind](text, **fields)


def _again(of: type[LinetenderError], args: tuple[Any, ...], fields: dict[str, Any]) -> LinetenderError:
    return of(*args, **fields)
