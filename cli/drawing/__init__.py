"""Terminal output beyond text: colours, tables that fit, folded lines, links. Only this package imports Rich."""
