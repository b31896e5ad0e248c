"""The parts of pages that need more than a template: pictures, grids, diffs, answers, payloads."""
