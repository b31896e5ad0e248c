"""The process that uses the GitHub account: it reads comments, carries out their commands, and posts comments, checks
and pull requests.
"""
