"""What images tell: squares, lattices, holes, their features, and patches of them."""
