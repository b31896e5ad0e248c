"""The process that has the GitHub account: it reads comments, carries out their commands and writes the declared
facts.
"""
