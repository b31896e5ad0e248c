"""One attempt of one job, from its worktree to its recorded outcome."""
