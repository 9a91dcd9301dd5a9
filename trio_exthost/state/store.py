"""What a store of durable state does. Its methods block: in a trio program call them in a worker thread.

A store holds rows and texts and never looks into them. A session's store is used by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import attrs

from trio_exthost.state.actions import Action
from trio_exthost.state.branches import Record
from trio_exthost.state.committed import Committed
from trio_exthost.state.entries import StoredBatch
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.projection import Projection
from trio_exthost.state.tree import Path, Tree


@attrs.frozen(kw_only=True)
class StoredTree:
    """What a session's store has beside the batches."""

    tree: Tree
    """All positions, and the one that was selected last."""
    last_sequence: int
    """The highest sequence that a batch was stored with, 0 if there is none; whoever draws new ones begins above."""


@attrs.frozen(kw_only=True)
class Compaction:
    """What a compaction did."""

    batches_before: int
    """Stored batches, before."""
    batches_after: int
    """The same, after."""
    bytes_before: int
    """Bytes of all their texts, before."""
    bytes_after: int
    """The same, after."""
    problem: str = ""
    """Why what is free now could not be given back to the file system; empty if it was. It is used up first, then."""


@attrs.frozen(kw_only=True)
class StoredName:
    """One session or extension that a store holds."""

    name: str
    """Id of the session, or name of the extension; of a file that cannot be read, the file's name."""
    path: str
    """Its file; empty in memory."""
    size_bytes: int
    """Of the file with its journal; of all texts in memory."""
    problem: str = ""
    """Why it cannot be used, as a damaged file; empty if it can."""


class SessionStore(Protocol):
    """One session's positions and batches; whoever has it open is the only one who writes to it."""

    @property
    def session_id(self) -> str:
        """Whose it is."""

    def append_group(self, records: Sequence[Record], *, selected: int) -> None:
        """Append all of these, in their order, and select a position: when this returns, it is stored; else nothing is.

        Args:
          records: Their rows are above all that are there, and grow.
          selected: Row of the position that is selected from now on.

        Raises:
          StoreFailed: It could not be written.
        """

    def load_tree(self) -> StoredTree:
        """The positions.

        Raises:
          StoreFailed: It could not be read.
          StoreDamaged: It is damaged; kept aside.
        """

    def load_branch(self, path: Path) -> Iterator[StoredBatch]:
        """The batches that belong to a branch, in the order of rows. Raises as `load_tree`, while it runs."""

    def load_all(self) -> Iterator[StoredBatch]:
        """All batches, in the order of rows. Raises as `load_tree`, while it runs."""

    def compact(self) -> Compaction:
        """Drop what no branch needs any more; every position keeps the state that it has.

        Raises:
          StoreFailed: As `append_group` and `load_tree`; everything is as it was.
        """

    def close(self) -> None:
        """Let go of it; others can open it then. Nothing that was stored needs this. Closing twice is closing once."""


class ExtensionStore(Protocol):
    """What one extension stores for all sessions. Threads, hosts and processes may share it: each call is one step.

    Nothing of it is kept in memory between two calls, as others may write.
    """

    @property
    def extension(self) -> str:
        """Whose it is."""

    def commit(
        self, actions: Sequence[Action], *, schema: int, sequence: int = 0, limits: StateLimits = DEFAULT_LIMITS
    ) -> Committed:
        """Store a batch: when this returns, it is stored; else nothing of it is.

        Raises:
          StateRefused: As `apply`; model contexts are refused too, as they belong to a session.
          StoreFailed: It could not be written.
        """

    def migrate(
        self,
        state: object,
        *,
        expected_revision: int,
        to_schema: int,
        sequence: int = 0,
        limits: StateLimits = DEFAULT_LIMITS,
    ) -> Committed:
        """Store what a migration returned, as one batch.

        Args:
          state: All keys and values in the new form.
          expected_revision: Of the state whose values the handler got.
          to_schema: The extension's `state_schema`.
          sequence: The session's number of the invocation.
          limits: How much may be stored.

        Raises:
          StateRefused: As `build_migration`; with `conflict` if somebody stored something meanwhile.
          StoreFailed: It could not be written.
        """

    def read(self, keys: Collection[str] | None = None) -> Projection:
        """The state as it stands.

        Args:
          keys: If given, only these values are in it, and no events; schema, revision and usage are of the whole.

        Raises:
          StoreFailed: It could not be read.
        """


class StateStores(Protocol):
    """Where the state of sessions and extensions lies."""

    def open_session(self, session_id: str, *, begin_anew: bool = False) -> SessionStore:
        """Open a session's store, which is made if there is none. The caller closes it.

        Args:
          session_id: Any text.
          begin_anew: Begin with an empty state where a damaged one was kept aside. Never changes a state that can be
            read.

        Raises:
          SessionBusy: Another host, or this one, has it open.
          StoreDamaged: It is damaged, or was and is kept aside.
          StoreFailed: It cannot be opened.
        """

    def open_extension(self, extension: str, *, begin_anew: bool = False) -> ExtensionStore:
        """The store of what an extension keeps for all sessions. Nothing is opened or made before it is used.

        Args:
          extension: Any text.
          begin_anew: As in `open_session`.
        """

    def sessions(self) -> tuple[StoredName, ...]:
        """All sessions that have a state, by name.

        Raises:
          StoreFailed: They cannot be listed. (One that cannot be read is listed with its problem.)
        """

    def extensions(self) -> tuple[StoredName, ...]:
        """All extensions that have a state of their own, by name. Raises as `sessions`."""
