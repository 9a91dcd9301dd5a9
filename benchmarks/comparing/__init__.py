"""What compares the columns: who takes part, the rounds in turn, the goals, the table and the picture."""
