"""What all pages stand in: sessions, forms, rendering, how open pages are told what changed."""
