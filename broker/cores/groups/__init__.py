"""The group coordinator, a core. `coordinator` dispatches requests and timers; `classic` is the classic group type.

A new group type is a package beside `classic` with a subclass of `group.Group`. Its state records go to `records` and to
`HardState.apply`, and its requests, timers and recovery to the three tables of `coordinator`.
"""
