"""From a share of the budget to noise and to its price, before a row is read."""
