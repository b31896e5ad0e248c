"""The GitHub account: its status, its polling, and previews of its comments."""
