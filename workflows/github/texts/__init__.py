"""The markdown of every posted comment: functions of rows, so that equal rows give equal texts."""
