"""The themes: dark, light, and high contrast. NO_COLOR removes the colours of all of them."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="dark",
    primary="#5fa8d3",
    secondary="#8a9ba8",
    accent="#d9a441",
    success="#6fbf73",
    warning="#d9a441",
    error="#e06c6c",
    foreground="#d7dce0",
    background="#14181c",
    surface="#14181c",
    panel="#222a31",
    dark=True,
    variables={
        "frame": "#3f4d59",
        # A fixed colour: text that a widget renders itself has no background to blend with.
        "text-muted": "#8a9ba8",
        "block-cursor-background": "#2f5d7c",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "none",
        "footer-key-foreground": "#5fa8d3",
    },
)
LIGHT = Theme(
    name="light",
    primary="#1f6f9f",
    secondary="#5b6770",
    accent="#9a6700",
    success="#1f7a33",
    warning="#9a6700",
    error="#b42318",
    foreground="#1d2429",
    background="#fbfbf9",
    surface="#fbfbf9",
    panel="#e9ecee",
    dark=False,
    variables={
        "frame": "#b4bec6",
        "text-muted": "#5b6770",
        "block-cursor-background": "#c5e0f0",
        "block-cursor-foreground": "#0b1f2b",
        "block-cursor-text-style": "none",
        "footer-key-foreground": "#1f6f9f",
    },
)
CONTRAST = Theme(
    name="contrast",
    primary="#00ffff",
    secondary="#ffffff",
    accent="#ffff00",
    success="#00ff00",
    warning="#ffff00",
    error="#ff6060",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#303030",
    dark=True,
    variables={
        "frame": "#ffffff",
        "text-muted": "#ffffff",
        "block-cursor-background": "#ffff00",
        "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "bold",
        "footer-key-foreground": "#ffff00",
    },
)
THEMES = (DARK, LIGHT, CONTRAST)
