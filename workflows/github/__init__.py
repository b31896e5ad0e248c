"""What GitHub is told and what is heard from it, as decisions: whether work is ready, and what is said of it."""
