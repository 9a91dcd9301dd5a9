"""The columns: each is a program of its own that takes orders on stdin and measures itself (`worker`, `floor.c`)."""
