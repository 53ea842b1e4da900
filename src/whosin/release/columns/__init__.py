"""What a column may hold, declared before anyone sees a row, and the cells made of it."""
