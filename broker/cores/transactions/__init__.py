"""The transaction coordinator, a core. `coordinator` dispatches requests and timers; `transition` computes each next state.

The hard state of a transactional id is its newest `TransactionRecord`. The server writes the markers that effects name, and
reports them with `markers_written`.
"""
