"""The recipes, one module per table or figure or a few that are alike, and what only one recipe uses."""
