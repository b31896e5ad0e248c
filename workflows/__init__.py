"""What must happen: the pure rules, the tree as a state machine, and the Temporal workflows that carry it out."""
