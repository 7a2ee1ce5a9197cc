"""The jobs: each joins the source, transforms and tables; what runs when is in `run`."""
