"""One attempt of a job: its prompt, worktree, program, verdict and outcome; and the rows of its tree."""
