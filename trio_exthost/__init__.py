"""An extension host on trio."""
