"""The command line: thin commands, exit statuses, standard output."""
