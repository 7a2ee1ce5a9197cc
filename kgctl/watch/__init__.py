"""What a series of looks at groups tells: rates, verdicts, rebalances. Pure: looks and times are arguments."""
