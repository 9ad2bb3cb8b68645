"""The recipes: what varies, and what is shown of it."""
