"""Which mechanism is best at one ε? A linear program by type, and a proof in whole numbers."""
