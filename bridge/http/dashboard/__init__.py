"""The dashboard: HTML pages over the same operations, served by the bridge under `/ui` (rulings M)."""
