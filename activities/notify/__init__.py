"""Notifications to people: channels, the complete text, delivery."""
