"""Data directories read offline: tables of their content, SQL over them, export. Nothing in them is written."""
