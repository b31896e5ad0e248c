"""The GitHub account at work, and what is told there of a tree."""
