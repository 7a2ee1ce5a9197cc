"""Plans of changes as files, what was there before a change, and the journal of what was done."""
