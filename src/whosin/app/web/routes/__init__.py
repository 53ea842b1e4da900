"""The JSON routes, a file a group; a refusal is always `{"error": {"field", "message"}}`."""
