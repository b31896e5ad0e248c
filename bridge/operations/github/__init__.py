"""The GitHub account at work: its status, and previews of its comments."""
