"""What is read of the rows: people bounded, many tables counted, checks, fingerprints."""
