"""The rules and texts of GitHub: commands in comments, the merge gate, the facts to post, and their texts."""
