"""SQLite beside the model, step by step; a restart is another object on the same files."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from store_machine import StoreMachine

from trio_exthost.state.sqlite import SqliteStores


class SqliteMachine(StoreMachine):
    def new_stores(self):
        self.directory = Path(tempfile.mkdtemp())
        return SqliteStores(self.directory)

    def restarted(self, stores):
        return SqliteStores(stores.directory)

    def teardown(self):
        super().teardown()
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)


TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(max_examples=20, stateful_step_count=20)
