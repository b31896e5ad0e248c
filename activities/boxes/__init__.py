"""Boxes limit what an agent's program can see and reach of the machine (ruling N2). Standard library only."""
