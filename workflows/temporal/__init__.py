"""The Temporal shell: the workflows, their messages, and the activities they call. Nothing in here decides."""
