"""What pages are made of that is more than a template: pictures, grids, diffs, answers, payloads."""
