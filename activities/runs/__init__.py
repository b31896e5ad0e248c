"""Supervised programs that outlive the worker that asked for them: started once, found again, ended, and watched by
their output. And the processes of the service itself: their logs and their exit.
"""
