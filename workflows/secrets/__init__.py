"""Finders of secrets in text, and their redaction (rulings A12, N7): by form, by name, by place, in decoded views."""
