"""An agent that embeds trio_exthost. `agent.py` is what an embedder copies."""
