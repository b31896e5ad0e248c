"""The read model and the home of what is not orchestration: one module per table, plain rows in, plain values out."""
