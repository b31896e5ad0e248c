"""The frame of all pages: sessions, forms, rendering, and live updates of open pages."""
