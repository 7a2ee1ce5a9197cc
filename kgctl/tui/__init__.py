"""The dashboard, `kgctl ui`: a face of the same client, models and rows as the commands. Only that command imports it."""
