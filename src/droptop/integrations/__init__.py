"""Plugins that bring droptop into the training loops of other libraries."""
