"""`unrender batch`: reads recorded answers, of files or of one stream."""
