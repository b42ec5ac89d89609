"""What leaves the dashboard: a head's development as GIF or page, bertviz's views as one document."""
