"""The store in memory beside the model, step by step."""

from hypothesis import settings
from store_machine import StoreMachine

from trio_exthost.state.memory import MemoryStores


class MemoryMachine(StoreMachine):
    def new_stores(self):
        return MemoryStores()


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(max_examples=30, stateful_step_count=25)
