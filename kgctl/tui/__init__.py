"""The dashboard, `kgctl ui`: it shows the same models as the commands. Only that command imports it."""
