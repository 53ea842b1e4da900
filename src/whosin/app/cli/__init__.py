"""The `whosin` command, one file per subcommand."""
