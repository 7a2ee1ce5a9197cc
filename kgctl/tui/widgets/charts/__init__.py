"""Series of numbers as characters: sparklines, area charts, bars."""
