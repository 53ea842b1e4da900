"""What can be said without a program: costs, bounds, and the optimal mechanisms with a formula."""
