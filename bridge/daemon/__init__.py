"""The processes of a cluster on one machine: starting, supervising, watching and stopping them."""
