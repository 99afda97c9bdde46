"""What a second is worth."""
