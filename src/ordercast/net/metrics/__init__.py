"""What a live host counts and measures."""
