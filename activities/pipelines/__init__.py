"""Side effects of pipelines: planning a run, running a shell stage's attempt, writing the rows of a run."""
