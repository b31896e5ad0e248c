"""The process that has the GitHub account: it reads comments, acts on what they order, writes what rows declare."""
