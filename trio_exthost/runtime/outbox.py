"""The outbox: what waits to be written to one extension.

A send channel of whole encoded frames. `post` appends and marks the outbox dirty; the host's one flusher gives every dirty
outbox one non-blocking write at the next tick, popping only what the pipe took. Only a head that is partly written is
pinned: everything else can still be dropped (events) or withdrawn (calls), so a call whose caller gave up while it waited
is never executed later, and one frame is never cut by another's cancellation.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Sequence

import trio

from trio_exthost.errors import ClosedError, Overloaded
from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.runtime.flusher import Flusher

WRITE_BYTES = 64 * 1024
"""What one write offers at most: the capacity of a pipe. (Joining 16 MiB first cost 211 ms against 9 ms.)"""


class Outbox(trio.abc.SendChannel[bytes]):
    """Frames waiting for one extension, in order; bounded in frames and bytes.

    It owns the descriptor of the extension's stdin. Nothing here raises for a fault of the peer: `on_broken` or
    `on_stalled` is told once, and the instance's own task does the rest.
    """

    def __init__(
        self,
        fd: int,
        flusher: Flusher,
        *,
        max_frames: int,
        max_bytes: int,
        extension: str = "",
        on_broken: Callable[[str], None],
        on_stalled: Callable[[str], None],
        on_drop: Callable[[int, int, int], None],
        on_full: Callable[[bool], None],
        encode_gap: Callable[[int, int, int], bytes | None] = lambda _count, _first, _last: None,
    ) -> None:
        """Take over `fd` and make it non-blocking.

        Args:
          fd: The writing end of the extension's stdin.
          flusher: Writes this outbox at the next tick once it is dirty.
          max_frames: Frames that may wait.
          max_bytes: Bytes that may wait, the partly written frame included.
          extension: Named in errors.
          on_broken: Told once, with the reason, when the extension has closed its end.
          on_stalled: Told once, with the reason, when it has read nothing for too long.
          on_drop: Told (count, first sequence, last sequence) of events that were dropped.
          on_full: Told True when answers wait over the bound, False when there is room again.
          encode_gap: Makes the frame that tells the extension of dropped events (count, first and last sequence number),
            or None where it does not want to know.
        """
        os.set_blocking(fd, False)
        self.fd: int = fd
        self._flusher = flusher
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._room = max_bytes  # as long as it takes anything; -1 from then on
        self._extension = extension
        self._on_broken = on_broken
        self._on_stalled = on_stalled
        self._on_drop = on_drop
        self._on_full = on_full
        self._encode_gap = encode_gap
        self._gap: Entry | None = None  # waits right behind a cut head, before every event that is left
        self._waiting: deque[Entry] = deque()
        self._bytes = 0
        self._offset = 0  # bytes of the head that the pipe has taken
        self._is_over = False
        self.is_dirty: bool = False
        self.is_broken: bool = False
        self.is_closing: bool = False
        self.taken_bytes: int = 0
        self.dropped: int = 0
        self._is_blocked = False
        self._blocked = trio.Event()

    # --- putting in ---

    @trio.lowlevel.enable_ki_protection
    def post(self, entry: Entry) -> None:
        """Queue an entry of any kind but CALL and have it written at the next tick. Never blocks, never raises."""
        self._flusher.deal()
        self._post(entry)

    @trio.lowlevel.enable_ki_protection
    def post_dealt(self, entries: Sequence[Entry], size: int) -> None:
        """As `post` of each of these, which are `size` bytes; called by the flusher for what was told to many."""
        waiting = self._waiting
        if self._bytes + size <= self._room and len(waiting) + len(entries) <= self._max_frames:
            waiting.extend(entries)
            self._bytes += size
            if not self.is_dirty:
                self.is_dirty = True
                self._flusher.mark(self)
        else:
            for entry in entries:
                self._post(entry)

    def _post(self, entry: Entry) -> None:
        if self.is_broken or self.is_closing:
            return
        if not self._is_full_for(entry) or self._make_room(entry):
            self._append(entry)

    @trio.lowlevel.enable_ki_protection
    def post_call(self, entry: Entry) -> None:
        """Queue a call and write it at once.

        Raises:
          Overloaded: There is no room; nothing was queued.
          ClosedError: The outbox is closed or its pipe broken; nothing was queued.
        """
        self._flusher.deal()
        if self.is_broken or self.is_closing:
            raise ClosedError("its input is closed", extension=self._extension)
        if self._is_full_for(entry):
            self.flush()
            if self._is_full_for(entry):
                raise Overloaded(
                    f"{len(self._waiting)} frames ({self._bytes} bytes) already wait to be read by it",
                    extension=self._extension,
                    hint="it reads too slowly, or not at all",
                )
        # Not marked: it is written now, and what the pipe does not take is the writer task's.
        self._waiting.append(entry)
        self._bytes += len(entry.data)
        self.flush()

    def _append(self, entry: Entry) -> None:
        self._waiting.append(entry)
        self._bytes += len(entry.data)
        if not self.is_dirty:
            self.is_dirty = True
            self._flusher.mark(self)

    def _is_full_for(self, entry: Entry) -> bool:
        return len(self._waiting) >= self._max_frames or self._bytes + len(entry.data) > self._max_bytes

    def _make_room(self, entry: Entry) -> bool:
        """At the bound: write what the pipe takes, then drop the oldest events. False when `entry` itself must go."""
        self.flush()
        if self.is_broken:
            return False
        if not self._is_full_for(entry):
            return True
        if entry.kind is Kind.ANSWER:
            if not self._is_over:
                self._is_over = True
                self._on_full(True)
            return True
        kept: deque[Entry] = deque()
        gone: list[Entry] = []
        if self._offset:
            kept.append(self._waiting.popleft())
        while self._waiting and (
            len(kept) + len(self._waiting) >= self._max_frames or self._bytes + len(entry.data) > self._max_bytes
        ):
            head = self._waiting.popleft()
            if head.kind is Kind.EVENT:
                gone.append(head)
                self._bytes -= len(head.data)
            else:
                kept.append(head)
        kept.extend(self._waiting)
        self._waiting = kept
        is_room = not self._is_full_for(entry) or entry.kind is Kind.KEPT
        if not is_room:
            gone.append(entry)
        if gone:
            count = sum(each.weight for each in gone)
            self.dropped += count
            self._note_gap(count, gone[0].sequence, gone[-1].sequence)
            self._on_drop(count, gone[0].sequence, gone[-1].sequence)
        return is_room

    def _note_gap(self, count: int, first: int, last: int) -> None:
        """The extension learns of the gap before the next event; gaps it has not been told of become one."""
        gap = self._gap
        place = 1 if self._offset else 0
        if gap is not None and len(self._waiting) > place and self._waiting[place] is gap:
            self._waiting.remove(gap)
            self._bytes -= len(gap.data)
            count, first = count + gap.weight, gap.sequence
        data = self._encode_gap(count, first, last)
        if data is not None:
            self._gap = Entry(data, Kind.ANSWER, first, weight=count)
            self._waiting.insert(place, self._gap)
            self._bytes += len(data)

    @trio.lowlevel.enable_ki_protection
    def withdraw(self, entry: Entry) -> bool:
        """Take a call back whose caller gave up; False when its first byte is in the pipe already, or it is gone."""
        self._flusher.deal()
        if not self._waiting or (self._offset and self._waiting[0] is entry):
            return False
        try:
            self._waiting.remove(entry)
        except ValueError:
            return False
        self._bytes -= len(entry.data)
        self._check_room()
        return True

    def drop_events(self) -> int:
        """Forget the waiting events that may be dropped (the extension is being stopped); how many they were."""
        self._flusher.deal()
        head = [self._waiting.popleft()] if self._offset else []
        before = len(self._waiting)
        rest = [entry for entry in self._waiting if entry.kind is not Kind.EVENT]
        self._waiting = deque(head + rest)
        self._bytes = sum(len(entry.data) for entry in self._waiting)
        return before - len(rest)

    # --- writing ---

    @trio.lowlevel.enable_ki_protection
    def flush(self) -> None:
        """Offer the pipe what waits, without blocking. Never raises for a fault of the peer."""
        self.is_dirty = False
        waiting = self._waiting
        while waiting and not self._is_blocked and self.fd >= 0:
            offset, is_all = self._offset, True
            if len(waiting) == 1 and not offset:
                chunk = waiting[0].data
            elif self._bytes - offset <= WRITE_BYTES:
                chunk = b"".join([entry.data for entry in waiting])[offset:]
            else:
                chunk, is_all = self._chunk(), False
            try:
                taken = os.write(self.fd, chunk)
            except BlockingIOError:
                taken = 0
            except OSError as exc:
                self._break(self._on_broken, f"it closed its input ({exc.strerror})")
                return
            if is_all and taken == len(chunk):  # the usual case: the pipe took all that waited
                waiting.clear()
                self.taken_bytes += taken
                self._bytes = self._offset = 0
                break
            self._take(taken)
            if taken < len(chunk):
                self._is_blocked = True
                self._blocked.set()
        if self._is_over:
            self._check_room()
        if self.is_closing and not waiting:
            self.close()

    def _chunk(self) -> bytes:
        """The next bytes to offer: whole frames up to WRITE_BYTES, or as much of a large head."""
        waiting, offset = self._waiting, self._offset
        head = waiting[0].data
        if len(waiting) == 1 or len(head) - offset >= WRITE_BYTES:
            return head[offset : offset + WRITE_BYTES]
        parts = [head[offset:]]
        size = len(parts[0])
        for entry in itertools.islice(waiting, 1, None):
            size += len(entry.data)
            if size > WRITE_BYTES:
                break
            parts.append(entry.data)
        return b"".join(parts)

    def _take(self, taken: int) -> None:
        """The pipe took so many bytes: pop the frames that are wholly gone, remember how far the head is."""
        self.taken_bytes += taken
        waiting = self._waiting
        taken += self._offset
        while waiting and taken >= len(waiting[0].data):
            size = len(waiting.popleft().data)
            taken -= size
            self._bytes -= size
        self._offset = taken

    def _check_room(self) -> None:
        if self._is_over and len(self._waiting) < self._max_frames and self._bytes < self._max_bytes:
            self._is_over = False
            self._on_full(False)

    def _break(self, tell: Callable[[str], None], reason: str) -> None:
        if not self.is_broken:
            self.is_broken = True
            self._room = -1
            self._waiting.clear()
            self._bytes = self._offset = 0
            self._blocked.set()
            tell(reason)

    async def write_blocked(self, stall_s: float) -> None:
        """The instance's writer: finish what the pipe would not take at once. Runs until the outbox is closed.

        When the extension takes no byte for `stall_s` seconds, `on_stalled` is told and this returns.
        """
        while self.fd >= 0 and not self.is_broken:
            await self._blocked.wait()
            if self.fd < 0 or self.is_broken:
                return
            with trio.move_on_after(stall_s) as scope:  # noqa: ASYNC912 - wait_writable is a cancel point
                try:
                    await trio.lowlevel.wait_writable(self.fd)
                except trio.ClosedResourceError:
                    return
            before = self.taken_bytes
            self._blocked = trio.Event()
            self._is_blocked = False
            self.flush()
            if scope.cancelled_caught and self.taken_bytes == before:
                self._break(self._on_stalled, f"it has read nothing for {stall_s:g} s")
                return

    # --- state ---

    @property
    def waiting_frames(self) -> int:
        """Frames that wait, the partly written one included."""
        self._flusher.deal()
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait; a partly written frame counts whole."""
        self._flusher.deal()
        return self._bytes

    @property
    def is_head_cut(self) -> bool:
        """Whether a frame is partly in the pipe."""
        return self._offset > 0

    def finish(self) -> None:
        """Take nothing more; what waits is still written, then the pipe is closed (by the next flush at the earliest)."""
        self._flusher.deal()
        self.is_closing = True
        self._room = -1

    def close(self) -> None:
        """Close the extension's stdin; idempotent. What still waits is lost."""
        self.is_closing = True
        self._room = -1
        if self.fd < 0:
            return
        fd, self.fd = self.fd, -1
        self._waiting.clear()
        self._bytes = self._offset = 0
        self._blocked.set()
        trio.lowlevel.notify_closing(fd)
        os.close(fd)

    # --- trio.abc.SendChannel ---

    def send_nowait(self, value: bytes) -> None:
        """Queue an encoded frame as a call: written at once, refused when there is no room.

        Raises:
          Overloaded: There is no room.
          ClosedError: It is closed.
        """
        self.post_call(Entry(value, Kind.CALL))

    async def send(self, value: bytes) -> None:
        """As `send_nowait`, with a checkpoint: nothing in the host ever waits for an extension to read."""
        await trio.lowlevel.checkpoint()
        self.send_nowait(value)

    async def aclose(self) -> None:
        """Close it, with a checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()
