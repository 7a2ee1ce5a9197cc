"""Known faults that are planted in a copy of the tree, to see that the tests catch each."""
