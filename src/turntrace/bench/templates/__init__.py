"""Where shipped tasks come from: each module makes one kind of task from a seed."""
