"""Pure decisions: one small module for each rule, named after it. Functions do not change their arguments."""
