"""What pipelines do to the world: planning a run, running its shell stages, writing its rows."""
