"""Git: worktrees, merging, committing, and seeing what a job touched (rulings I1 to I5)."""
