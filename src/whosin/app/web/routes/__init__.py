"""The JSON routes, one file per group; a refusal is always `{"error": {"field", "message"}}`."""
