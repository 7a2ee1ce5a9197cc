"""The doctor of groups: rules that look at facts and find what is wrong, with evidence."""
