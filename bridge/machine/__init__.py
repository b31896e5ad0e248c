"""What the processes of one home know of each other on this machine: locks, ports, addresses, the daemon's word."""
