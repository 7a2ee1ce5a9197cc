"""The generic table: columns, rows, and the cursor that it shares with the assignment grid."""
