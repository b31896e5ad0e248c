"""The functions that terminal, HTTP, dashboard and GitHub comments all call, in packages by subject."""
