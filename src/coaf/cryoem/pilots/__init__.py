"""What flies a session: COAF, and what people and other programs do."""
