"""The branches of a tree: where work is, merging and dropping it, diffs, the gate, publishing."""
