"""Supervised programs that outlive the worker that asked for them: started once, found again, ended, and watched by
their output.
"""
