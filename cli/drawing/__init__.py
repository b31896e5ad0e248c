"""Printing and drawing. All output goes through `output`, which makes text safe. Only this package imports rich.

Rich draws the live view and the manual. Three things are drawn here instead. Tables: rich can't leave out columns by
rank in a narrow window. The progress line: rich's hides the cursor, even after Ctrl-Z or a kill, and leaves a copy
behind if the window gets narrower. The pager: rich's waits for the end of the text.
"""
