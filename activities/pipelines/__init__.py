"""What pipelines do to the world: planning a run, what is a shell stage's own in its attempt, the rows of a run."""
