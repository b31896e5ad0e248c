"""Pure decisions, a small module each, named after the rule it carries. They change nothing they are given."""
