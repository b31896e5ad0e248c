"""What is a job's own in its attempt: prompt, worktree, program, verdict, outcome; and the rows of its tree."""
