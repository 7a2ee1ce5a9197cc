"""Named clusters, and the only place that decides how kgctl connects: which cluster, with which credentials."""
