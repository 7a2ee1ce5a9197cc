"""What kgctl knows of a cluster, as frozen rows. The fields of a row, in order, are the keys of the JSON output."""
