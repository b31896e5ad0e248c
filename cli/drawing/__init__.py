"""What a terminal shows beyond text: colours, tables that fit, folded lines, links. Rich is imported only here."""
