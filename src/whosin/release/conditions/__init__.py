"""`where`: conditions on one row, alike on every engine, that no row can make fail."""
