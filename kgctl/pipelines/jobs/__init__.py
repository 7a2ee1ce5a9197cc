"""The jobs' functions, and the loop that runs them. The declarations are in `kgctl.pipelines.catalog`."""
