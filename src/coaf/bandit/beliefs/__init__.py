"""What is known of the mean reward."""
