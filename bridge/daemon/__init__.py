"""The processes that make a cluster on one machine: how they are started, kept alive, watched and stopped."""
