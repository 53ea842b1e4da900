"""The `whosin` command, a file a subcommand."""
