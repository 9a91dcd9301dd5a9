"""Bytes to lines to frames, and what is legal when. Pure: no trio, no clock, no I/O.

Frame classes are used with their module's name (`from_extension.ToolResult`, `to_extension.ToolResult`): some words
go both ways. The closed sets of their words are in `words`.
"""

from trio_exthost.wire import from_extension as from_extension
from trio_exthost.wire import to_extension as to_extension
from trio_exthost.wire.codec import Codec as Codec
from trio_exthost.wire.connection import Connection as Connection
from trio_exthost.wire.connection import Fault as Fault
from trio_exthost.wire.dialect import EFFECTS as EFFECTS
from trio_exthost.wire.dialect import ZOT as ZOT
from trio_exthost.wire.dialect import Dialect as Dialect
from trio_exthost.wire.lines import LineSplitter as LineSplitter
from trio_exthost.wire.lines import LineTooLong as LineTooLong
from trio_exthost.wire.phases import TRANSITIONS as TRANSITIONS
from trio_exthost.wire.phases import Move as Move
from trio_exthost.wire.phases import Phase as Phase
from trio_exthost.wire.values import ABSENT as ABSENT
