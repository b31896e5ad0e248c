"""One attempt of a job: its prompt, worktree, program, judgement and outcome; and the rows of its tree."""
