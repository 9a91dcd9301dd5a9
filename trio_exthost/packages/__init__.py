"""What is on disk: manifests, discovery, trust.

Synchronous: everything here reads or writes files and touches no trio. Call it in a worker thread, or before there is
anything to hold up.
"""

from __future__ import annotations

from trio_exthost.packages.catalogue import Candidate, Origin, Status, discover
from trio_exthost.packages.digest import package_digest
from trio_exthost.packages.digests import with_digests
from trio_exthost.packages.explain import explain_exit, explain_spawn_error
from trio_exthost.packages.manifest import (
    MANIFEST_NAME,
    PERMISSIONS,
    HostSection,
    Manifest,
    load_manifest,
    parse_manifest,
)
from trio_exthost.packages.resolve import child_environment, resolve_exec
from trio_exthost.packages.trust import TrustDecision, TrustStore

__all__ = [
    "MANIFEST_NAME",
    "PERMISSIONS",
    "Candidate",
    "HostSection",
    "Manifest",
    "Origin",
    "Status",
    "TrustDecision",
    "TrustStore",
    "child_environment",
    "discover",
    "explain_exit",
    "explain_spawn_error",
    "load_manifest",
    "package_digest",
    "parse_manifest",
    "resolve_exec",
    "with_digests",
]
