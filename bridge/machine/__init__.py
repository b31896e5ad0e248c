"""The shared state of one home's processes on this machine: locks, ports, addresses, tokens and the daemon's state."""
