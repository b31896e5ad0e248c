"""The delegation tree as a state machine: state, events, commands, one reducer."""
