"""Printing and drawing. All output goes through `output`, which makes text safe. Only this package imports rich.

Rich draws the live view and the manual. Tables are drawn here: their columns leave by rank in a narrow window, and rich
has no such columns. So is the progress line: rich's status hides the cursor, also after Ctrl-Z or a kill, and leaves a
copy of its line in a window that became narrower. So is the pager: rich's waits for the end of the text.
"""
