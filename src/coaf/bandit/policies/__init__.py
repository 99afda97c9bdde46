"""What decides: the three verbs, COAF, and what it is compared with."""
