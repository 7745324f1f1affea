"""How asyncio hears of what the native half did.

The native half has a thread of its own, which never waits for the interpreter: it leaves notes at a hub, whose bell is a
descriptor. Each event loop that uses a line watches one hub, for as long as it uses any.
"""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from . import _errors, _native
from ._spelling import loads

#: Called with (progress, total, message), like the SDK's callback. It may be a coroutine function.
ProgressCallback = Callable[[float, "float | None", "str | None"], "Awaitable[None] | None"]

_DONE, _FAILED, _PROGRESS = 0, 1, 2

#: The most callbacks of one call that run at once, and what they may weigh together: a server decides how long they are.
_CALLBACKS = 256
_CALLBACK_BYTES = 1024 * 1024

#: How long an answer waits for callbacks that still run, in seconds.
_PATIENCE = 5.0


class Loop:
    """What one event loop waits for. The event loop keeps it, by watching the bell, and nobody else does."""

    _all: weakref.WeakValueDictionary[int, Loop] = weakref.WeakValueDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._key = id(loop)
        self._loop = weakref.ref(loop)
        self._hub = _native.Hub()
        self._fileno = self._hub.fileno()
        self._inbox: deque[tuple[int, int, Any]] = deque()
        self._next = 0
        self._waiting: dict[int, _Waiting] = {}
        self._users = 0
        loop.add_reader(self._fileno, self._ring)
        self._all[self._key] = self

    @classmethod
    def running(cls) -> Loop:
        """That of the running event loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                "linetender lines need a running asyncio event loop; under trio use linetender.session"
            ) from None
        known = cls._all.get(id(loop))
        # An id is used again when its object is gone, and a forked child has the parent's hubs.
        if known is None or known._loop() is not loop or not known._hub.is_here():
            known = cls(loop)
        return known

    def use(self) -> None:
        """Something is open that this loop works with."""
        self._users += 1

    def leave(self) -> None:
        """That is over. May be called from any thread, also by the garbage collector."""
        loop = self._loop()
        if loop is None or loop.is_closed() or _running() is loop:
            self._left()
        else:
            try:
                loop.call_soon_threadsafe(self._left)
            except RuntimeError:  # it was closed in between
                self._left()

    def _left(self) -> None:
        self._users -= 1
        self._rest()

    def _rest(self) -> None:
        """Stops watching when nothing is open and nothing is waited for."""
        if self._users > 0 or self._waiting or self._all.get(self._key) is not self:
            return
        self._all.pop(self._key, None)
        loop = self._loop()
        if loop is not None and not loop.is_closed() and self._hub.is_here():
            loop.remove_reader(self._fileno)

    def _ring(self) -> None:
        # An interrupt may come between any two steps. Until `settle` the bell rings on, and what was taken is kept.
        inbox = self._inbox
        self._hub.take(inbox)
        while inbox:
            number, kind, value = inbox[0]
            waiting = self._waiting.get(number)
            if kind == _PROGRESS:
                inbox.popleft()  # first: what its callback raises must not bring it back
            # Whoever gave up does not wait any more.
            if waiting is not None:
                waiting.told(kind, value)
            if kind != _PROGRESS:
                inbox.popleft()  # last: nobody else tells it
        self._hub.settle()

    async def run(
        self,
        start: Callable[..., _native.Pending],
        *args: Any,
        progress: ProgressCallback | None = None,
    ) -> Any:
        """Has the native half do something, and waits for what comes of it. Cancelling cancels it, and nothing else."""
        loop = asyncio.get_running_loop()
        number = self._next
        self._next = number + 1
        waiting = _Waiting(loop, progress)
        self._waiting[number] = waiting
        pending = None
        try:
            pending = start(self._hub, number, *args)
            result = await waiting.future
            pending = None
            if waiting.callbacks:
                # What a callback raises is not the call's: the answer must not be lost for it.
                await asyncio.wait(waiting.callbacks, timeout=_PATIENCE)
            return result
        finally:
            del self._waiting[number]
            if pending is not None:
                pending.cancel()
            for callback in list(waiting.callbacks):
                callback.cancel()
            # An exception keeps this frame, and the future keeps the exception: without the way back nothing keeps both.
            del waiting
            if self._users <= 0:
                self._rest()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Waiting:
    """One piece of work, and who waits for it."""

    __slots__ = ("callbacks", "future", "loop", "progress", "weight")

    def __init__(self, loop: asyncio.AbstractEventLoop, progress: ProgressCallback | None) -> None:
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.progress = progress
        #: Those that run. A server decides how many there would be.
        self.callbacks: set[asyncio.Future[None]] = set()
        self.weight = 0

    def told(self, kind: int, value: Any) -> None:
        if self.future.done():
            return
        if kind == _DONE:
            self.future.set_result(value)
        elif kind == _FAILED:
            self.future.set_exception(_errors.of_fields(value))
        elif kind == _PROGRESS:
            self._progressed(value)
        else:
            self.future.set_exception(RuntimeError("linetender's own task failed; please report this"))

    def _progressed(self, params: str) -> None:
        assert self.progress is not None
        if len(self.callbacks) >= _CALLBACKS or self.weight + len(params) > _CALLBACK_BYTES:
            return  # they are slower than the server: some progress is not heard
        try:
            said = loads(params)
            told = self.progress(said.get("progress"), said.get("total"), said.get("message"))
            if inspect.isawaitable(told):
                callback = asyncio.ensure_future(told)
                self.callbacks.add(callback)
                self.weight += len(params)
                callback.add_done_callback(partial(self._called, len(params)))
        except (Exception, asyncio.CancelledError) as error:
            self._failed(error)

    def _called(self, weight: int, callback: asyncio.Future[None]) -> None:
        self.callbacks.discard(callback)
        self.weight -= weight
        if not callback.cancelled() and (error := callback.exception()) is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        # A callback that fails is its owner's bug: the call goes on.
        self.loop.call_exception_handler({"message": "a progress callback failed", "exception": error})
