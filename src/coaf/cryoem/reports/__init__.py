"""What people read after a session, and the paper's experiment."""
