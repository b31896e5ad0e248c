"""Git: worktrees, merging, committing, and listing the files a job touched (rulings I1 to I5)."""
