"""Dialogs: a change with its plan, consent to it, and its outcome."""
