"""Durable state: what extensions store, by branch of a session's transcript or for all sessions.

Everything named here is pure. The stores are imported from their own modules: `trio_exthost.state.sqlite`, the default,
and `trio_exthost.state.memory`.
"""

from trio_exthost.state.actions import DURABLE_KINDS as DURABLE_KINDS
from trio_exthost.state.actions import Action as Action
from trio_exthost.state.actions import check_may_store as check_may_store
from trio_exthost.state.actions import read_actions as read_actions
from trio_exthost.state.applying import Applied as Applied
from trio_exthost.state.applying import apply as apply
from trio_exthost.state.branches import Advance as Advance
from trio_exthost.state.branches import Checkout as Checkout
from trio_exthost.state.branches import Commit as Commit
from trio_exthost.state.branches import Migrate as Migrate
from trio_exthost.state.branches import Operation as Operation
from trio_exthost.state.committed import Committed as Committed
from trio_exthost.state.entries import Batch as Batch
from trio_exthost.state.entries import Placement as Placement
from trio_exthost.state.entries import decode_batch as decode_batch
from trio_exthost.state.limits import StateLimits as StateLimits
from trio_exthost.state.migration import Migration as Migration
from trio_exthost.state.migration import needs_migration as needs_migration
from trio_exthost.state.projection import CustomEvent as CustomEvent
from trio_exthost.state.projection import ModelContext as ModelContext
from trio_exthost.state.projection import Projection as Projection
from trio_exthost.state.session_state import Outcome as Outcome
from trio_exthost.state.session_state import SessionState as SessionState
from trio_exthost.state.session_state import Written as Written
from trio_exthost.state.store import Compaction as Compaction
from trio_exthost.state.store import ExtensionStore as ExtensionStore
from trio_exthost.state.store import SessionStore as SessionStore
from trio_exthost.state.store import StateStores as StateStores
from trio_exthost.state.store import StoredName as StoredName
from trio_exthost.state.tree import Position as Position
from trio_exthost.state.usage import Usage as Usage
