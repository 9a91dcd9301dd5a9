"""One kernel object that watches every descriptor: epoll on Linux, kqueue on macOS, behind the same four methods."""

from __future__ import annotations

import select
import sys

if sys.platform == "linux":

    class Poller:
        """Which registered descriptors can be read, or have been hung up."""

        def __init__(self) -> None:
            self._epoll = select.epoll()

        def fileno(self) -> int:
            """A descriptor trio can wait for."""
            return self._epoll.fileno()

        def register(self, fd: int) -> None:
            """Watch `fd` for input."""
            self._epoll.register(fd, select.EPOLLIN)

        def unregister(self, fd: int) -> None:
            """Stop watching it; a masked descriptor would still report HUP for ever, so there is no pause by mask."""
            self._epoll.unregister(fd)

        def ready(self, at_most: int) -> list[int]:
            """Descriptors with input or a hang-up right now, without waiting."""
            return [fd for fd, _ in self._epoll.poll(0, at_most)]

        def close(self) -> None:
            """Give the kernel object back."""
            self._epoll.close()

else:

    class Poller:
        """Which registered descriptors can be read, or have been hung up."""

        def __init__(self) -> None:
            self._kqueue = select.kqueue()

        def fileno(self) -> int:
            """A descriptor trio can wait for."""
            return self._kqueue.fileno()

        def _change(self, fd: int, flags: int) -> None:
            self._kqueue.control([select.kevent(fd, select.KQ_FILTER_READ, flags)], 0)

        def register(self, fd: int) -> None:
            """Watch `fd` for input."""
            self._change(fd, select.KQ_EV_ADD)

        def unregister(self, fd: int) -> None:
            """Stop watching it."""
            self._change(fd, select.KQ_EV_DELETE)

        def ready(self, at_most: int) -> list[int]:
            """Descriptors with input or a hang-up right now, without waiting."""
            return [event.ident for event in self._kqueue.control(None, at_most, 0)]

        def close(self) -> None:
            """Give the kernel object back."""
            self._kqueue.close()
