"""Jobs and trees as they are read: rows, events, pauses, output, spend, and the host they wait for."""
