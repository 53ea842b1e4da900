"""The ends that people touch: the command line. Nobody imports this room."""
