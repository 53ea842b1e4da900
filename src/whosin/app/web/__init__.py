"""The page: `whosin serve` and its JSON routes. `server.make_app` puts it together."""
