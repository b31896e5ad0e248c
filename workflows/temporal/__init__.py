"""The Temporal shell: workflows, their messages, and the activities they call. It contains no decisions."""
