"""The Temporal shell: workflows, their messages, and the activities they call. Nothing in here decides."""
