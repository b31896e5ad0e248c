"""Supervised programs that outlive the worker that started them: started once, found again, watched and ended. Also the
processes of the service itself: their logs and their exit.
"""
