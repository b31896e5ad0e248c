"""The branches of a tree: their state, merging and dropping them, diffs, the merge gate, publishing."""
