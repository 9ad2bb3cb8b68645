"""droptop in other people's training loops."""
