"""The store: rows, with one module per table or subject, plain values in and out; and artifacts by digest."""
