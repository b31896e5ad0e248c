"""Finders of secrets in text, and their redaction (rulings A12, N7). Secrets are found by form, by name and by place,
also in decoded views of the text.
"""
