"""What is drawn on a terminal and nowhere else: colours, tables that fit, folded lines, links, views that live."""
