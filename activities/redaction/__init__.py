"""What is stored or shown goes through here: secrets are taken out; what work needs is kept apart (ruling N7)."""
