"""The matrix of faults: seeded cases, each a small tree, a station, and a fault that strikes there and proves it."""
