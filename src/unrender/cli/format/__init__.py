"""`unrender format show`: shows, compares, declares and exports formats; `description` says in words what is in one."""
