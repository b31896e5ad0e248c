"""Pure decisions, a small module each, named after its rule. They do not change their arguments."""
