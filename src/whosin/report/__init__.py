"""Showing results: the only room, with the command, that formats numbers for people."""
