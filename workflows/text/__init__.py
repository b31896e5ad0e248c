"""Helpers for text: invisible characters, fences around foreign text, markdown blocks, patterns, durations, digests."""
