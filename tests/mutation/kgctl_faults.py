"""Faults of the toolkit."""

from __future__ import annotations

from tests.mutation.faults import Fault

CHANGES = ("tests/kgctl/commands/test_changes_and_undo.py",)
PLANS = ("tests/kgctl/journal", "tests/kgctl/commands/test_plans_and_undo.py")
SNAPSHOTS = ("tests/kgctl/commands/test_snapshots.py",)
RESETS = (
    "tests/kgctl/client/admin/test_changes.py",
    "tests/kgctl/client/admin/test_reset_races.py",
    "tests/kgctl/commands/test_reset_offsets.py",
)
GRAMMAR = ("tests/kgctl/conditions",)
CONDITIONS = (*GRAMMAR, "tests/kgctl/commands/test_conditions.py")
LAG = ("tests/kgctl/watch/test_lag.py", "tests/kgctl/client/admin/test_lag_facts.py")
FORMATS = (
    "tests/kgctl/render",
    "tests/kgctl/commands/test_json_output.py",
    "tests/kgctl/commands/test_groups_list.py",
)
COMPAT = ("tests/kgctl/compat",)
OFFLINE = ("tests/kgctl/commands/test_store.py",)
COMPLETION = ("tests/kgctl/commands/test_completion.py",)
CONTEXTS = ("tests/kgctl/contexts", "tests/kgctl/client/net")
SWITCH = ("tests/kgctl/tui/test_contexts_screen.py",)
OPEN_TRANSACTIONS = ("tests/kgctl/tui/test_transactions_screen.py",)
WEB = ("tests/kgctl/tui/test_web_server.py",)
AIM = ("tests/kgctl/tui/test_aim.py",)
BULK = ("tests/kgctl/tui/test_bulk_changes.py",)
EARLY_START = ("tests/kgctl/commands/test_broker_early_start.py",)


def fault(name: str, path: str, right: str, wrong: str, tests: tuple[str, ...]) -> Fault:
    return Fault(name, path, right, wrong, tests, "kgctl")


RECORDING = ("tests/kgctl/tui/test_recording_file.py", "tests/kgctl/tui/test_replay.py")
KGCTL_FAULTS = (
    # ---- verdicts
    fault(
        "a dashboard does not ask where recent records begin",
        "tui/feed/groups.py",
        "    found, _ = admin.with_recent(groups, now_ms - round(recent_s * 1000), now_ms)\n",
        "    found = groups\n",
        ("tests/kgctl/tui/test_real_troubles.py",),
    ),
    fault(
        "what one snapshot proves about recent records is forgotten with the next",
        "watch/tracker.py",
        "        if group.recent_from and (at_s > self.recent_at_s or not self.recent_from):\n",
        "        if (group.recent_from or self.recent_from) and (at_s > self.recent_at_s or not self.recent_from):\n",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "a group that never committed has no lag once its members die",
        "watch/tracker.py",
        "        self.uncommitted = self.last_uncommitted if is_left else uncommitted\n",
        "        self.uncommitted = uncommitted\n",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "rates judge a group between two commits",
        "watch/health.py",
        "    if is_measured and rate_in is not None and rate_out:\n",
        "    if is_measured and rate_in is not None and rate_out is not None:\n",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "a lagging group is OK as soon as it commits no more",
        "watch/health.py",
        "    if between is not None and between.health is not Health.OK:\n",
        "    if False:\n",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "commits of members that have died are those of another reader",
        "watch/health.py",
        "        and tracker.moved_before_s > (tracker.memberless_at_s or 0.0)\n",
        "",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "a group is OK although it has not read records of long ago",
        "watch/recency.py",
        "    if offset is None or start is None or offset < start:\n",
        "    if offset is None or start is None:\n",
        ("tests/kgctl/watch/test_standing.py",),
    ),
    fault(
        "a partition without new records proves nothing about those that wait",
        "client/admin/recent_offsets.py",
        "start = ends.get(key) if key in quiet else starts.get(key)",
        "start = starts.get(key)",
        ("tests/kgctl/client/admin/test_recent_offsets.py",),
    ),
    fault(
        "a slower snapshot loses what it proves about recent records",
        "watch/tracker.py",
        "        if group.recent_from and (at_s > self.recent_at_s or not self.recent_from):\n",
        "        if group.recent_from and at_s > max(self.at_s, self.recent_at_s):\n",
        ("tests/kgctl/watch/test_standing.py",),
    ),
    fault(
        "BEHIND is that of any partition",
        "watch/waiting.py",
        "            longest_s = max(longest_s, found)\n",
        "            longest_s = found if not longest_s else min(longest_s, found)\n",
        ("tests/kgctl/watch/test_waiting.py",),
    ),
    fault(
        "BEHIND leaves out partitions of which nothing is known",
        "watch/waiting.py",
        "        else:\n            return None\n",
        "",
        ("tests/kgctl/watch/test_waiting.py",),
    ),
    fault(
        "BEHIND takes an old commit for an old record",
        "watch/waiting.py",
        "(quiet_s >= limit_s and leaves_old_records(tracker, row))",
        "quiet_s >= limit_s",
        ("tests/kgctl/watch/test_waiting.py",),
    ),
    fault(
        "members of a KIP-848 group are shown although older records were not read",
        "watch/newer_groups.py",
        "len(self.members) if self.is_whole else None",
        "len(self.members)",
        ("tests/kgctl/watch/test_derived_events.py",),
    ),
    # ---- switching clusters, open transactions
    fault(
        "a switch to another cluster keeps the rights of the old one",
        "tui/app.py",
        "        self.feed, self.read_only = feed, bool(self.read_only_reason) or feed.cluster.read_only\n",
        "        self.feed = feed\n",
        SWITCH,
    ),
    fault(
        "a group that reads beyond a transaction counts as waiting for it",
        "watch/transactions.py",
        "            elif row.lag and row.current_offset <= stable:\n",
        "            elif row.lag:\n",
        OPEN_TRANSACTIONS,
    ),
    # ---- actions of the dashboard
    fault(
        "a row that goes leaves the cursor on another one",
        "tui/widgets/table/rows.py",
        "        elif line is None and before is not None and gone:\n",
        "        elif False and gone:\n",
        AIM,
    ),
    fault(
        "a list without the focus scrolls away from its first rows",
        "tui/widgets/table/rows.py",
        "        is_top = self._follows_top and not self._is_in_use()\n",
        "        is_top = False\n",
        ("tests/kgctl/tui/test_groups_screen.py",),
    ),
    fault(
        "actions in the list of events are about the group in another table",
        "tui/screens/groups.py",
        "        if self.events.table.has_focus:\n",
        "        if False:\n",
        ("tests/kgctl/tui/test_groups_screen.py",),
    ),
    fault(
        "an action takes a group that is gone",
        "tui/screens/groups.py",
        "        return Aim([row.group]) if self._is_there(row) else Aim(gone=row.group)\n",
        "        return Aim([row.group])\n",
        AIM,
    ),
    fault(
        "a change of several groups is executed without their number",
        "tui/dialogs/plan.py",
        '        if word and self.query_one("#name", Input).value in (word, printable(word)):\n',
        "        if word:\n",
        BULK,
    ),
    fault(
        "a plan is executed before it can have been read",
        "tui/dialogs/plan.py",
        "time.monotonic() - self._planned_s < self.READING_S:\n",
        "False:\n",
        BULK,
    ),
    fault(
        "the removal dialog preselects a member",
        "tui/dialogs/removal.py",
        "        name = f\"Instance '{instance}'\" if instance is not None else",
        "        self._marked.add(_key(found[0]))\n        name = f\"Instance '{instance}'\" if instance is not None else",
        ("tests/kgctl/tui/test_removal.py",),
    ),
    # ---- plans of resets
    fault(
        "a reset beyond the log is not clamped",
        "client/admin/reset_targets.py",
        "    new = min(max(wanted, start.offset), end.offset)\n",
        "    new = wanted\n",
        RESETS,
    ),
    fault(
        "a reset ignores offsets of open transactions",
        "client/admin/reset_targets.py",
        "    return commit is not None and commit.error is not None and commit.error.name == PENDING\n",
        "    return False\n",
        RESETS,
    ),
    fault(
        "a reset of all topics takes topics that the pattern does not match",
        "client/admin/reset_targets.py",
        "self.pattern.fullmatch(topic) is not None",
        "self.pattern.match(topic) is not None",
        RESETS,
    ),
    fault(
        "a reset is committed although another client has committed since the plan",
        "client/admin/reset.py",
        "        if offset != row.old_offset and not row.error:\n",
        "        if offset is None and not row.error:\n",
        RESETS,
    ),
    fault(
        "a reset is committed although members have joined since the plan",
        "client/admin/reset.py",
        "            elif not is_missing and now.state not in EMPTY_STATES:\n",
        "            elif False:\n",
        RESETS,
    ),
    fault(
        "a reset creates the group again that was deleted since the plan",
        "client/admin/reset.py",
        "            if is_missing and plan.state is not None:\n",
        "            if False:\n",
        RESETS,
    ),
    fault(
        "a reset does not compare what it reads back",
        "client/admin/reset.py",
        "    if found is None or found.offset != row.new_offset:\n",
        "    if found is None:\n",
        RESETS,
    ),
    fault(
        "a group that does not exist is planned without --create",
        "client/admin/reset_plans.py",
        "error=None if create else RowError(NotFound.name, hint)",
        "error=None",
        RESETS,
    ),
    # ---- apply
    fault(
        "apply ignores committed offsets that have changed",
        "journal/comparison.py",
        "        if there != planned.get(key):\n",
        "        if (there is None) != (planned.get(key) is None):\n",
        PLANS,
    ),
    fault(
        "apply deletes a group that has committed more offsets since",
        "journal/comparison.py",
        "        keys = sorted({*planned, *offsets})\n",
        "        keys = sorted(planned)\n",
        PLANS,
    ),
    fault(
        "apply ignores members that have joined",
        "journal/comparison.py",
        "    joined = [_name(after[key]) for key in after if key not in before]\n",
        "    joined: list[str] = []\n",
        PLANS,
    ),
    fault(
        "apply ignores that the group was deleted",
        "journal/comparison.py",
        "    if _exists(plan.state) and now.state is None:\n",
        "    if False:\n",
        PLANS,
    ),
    fault(
        "apply takes a plan for another cluster",
        "commands/journal/apply.py",
        "    if plan.cluster_id != cluster_id:\n",
        "    if not cluster_id:\n",
        PLANS,
    ),
    fault(
        "apply with --force deletes a group that has members",
        "journal/execution.py",
        "    if plan.action == DELETION and plan.has_members:\n",
        "    if False:\n",
        (*PLANS, "tests/kgctl/client/admin/test_changes.py"),
    ),
    fault(
        "a plan deletes offsets although a commit of it failed",
        "journal/execution.py",
        "        if not outcomes.get(plan.group)\n",
        "",
        PLANS,
    ),
    # ---- undo
    fault(
        "undo overwrites offsets that were committed after the change",
        "journal/undoing.py",
        "        if offset not in (move.new_offset, None if was is None else was.offset):\n",
        "        if offset is None:\n",
        PLANS,
    ),
    fault(
        "undo loses the metadata of commits",
        "journal/undoing.py",
        "leader_epoch=epoch, metadata=stored.metadata)",
        "leader_epoch=epoch)",
        PLANS,
    ),
    fault(
        "undo commits a leader epoch that the partition does not have",
        "journal/undoing.py",
        "    if epoch is not None and epoch > epochs.get(key, -1):\n        epoch = None\n",
        "",
        (*PLANS, *SNAPSHOTS),
    ),
    fault(
        "undo without an ID takes back a change twice",
        "commands/journal/undo.py",
        "row.verb == VERB or row.undone_by is not None or row.outcome in (FAILED, RUNNING)",
        "row.verb == VERB or row.outcome in (FAILED, RUNNING)",
        PLANS,
    ),
    fault(
        "a change is made before the journal has its entry",
        "journal/recording.py",
        "    begun = journal.begin(plan, before, origin, items)\n    try:\n        result = act()\n",
        "    result = act()\n    begun = journal.begin(plan, before, origin, items)\n    try:\n        pass\n",
        PLANS,
    ),
    fault(
        "an interrupted change counts as done",
        "journal/recording.py",
        "        _end(begun, INTERRUPTED, None, (), warn)\n",
        '        _end(begun, "done", None, (), warn)\n',
        (*PLANS, "tests/kgctl/commands/test_reset_offsets.py"),
    ),
    fault(
        "a lost answer counts as a failure",
        "journal/results.py",
        "    if uncertain is not None:\n",
        "    if False:\n",
        PLANS,
    ),
    fault(
        "undo deletes a new topic that has records",
        "journal/reversal.py",
        "        if now.records != 0:\n",
        "        if False:\n",
        CHANGES,
    ),
    fault(
        "undo deletes a topic that was created again since",
        "journal/reversal.py",
        "        if item.topic_id is not None and now.topic_id != item.topic_id:\n",
        "        if False:\n",
        CHANGES,
    ),
    fault(
        "undo overwrites a config that was changed since",
        "journal/reversal.py",
        "    if now.value != item.new:\n",
        "    if False:\n",
        CHANGES,
    ),
    fault(
        "undo sets a config to the default that was in force before",
        "journal/items.py",
        "            old = known.value if known is not None and known.is_own else None\n",
        "            old = known.value if known is not None else None\n",
        CHANGES,
    ),
    fault(
        "the undo of a new group leaves the group",
        "journal/undoing.py",
        "    deleted = admin.delete_groups([GroupChange(name, None) for name in empty]) if empty else []\n",
        "    deleted: list[GroupChange] = []\n",
        PLANS,
    ),
    # ---- conditions
    fault(
        "not of an unknown value holds",
        "conditions/evaluation.py",
        "            found = holds(part, values)\n            return None if found is None else not found\n",
        "            return not holds(part, values)\n",
        GRAMMAR,
    ),
    fault(
        "or binds as tightly as and",
        "conditions/parsing.py",
        '        return self._joined("and", self._part, And)\n',
        '        return self._joined("and", self._condition if self._depth else self._part, And)\n',
        GRAMMAR,
    ),
    fault(
        "a lag without a committed offset counts as 0",
        "conditions/observation.py",
        "            lag = 0 if is_empty else None\n",
        "            lag = 0\n",
        CONDITIONS,
    ),
    fault(
        "wait takes a condition that came and went for a stable one",
        "commands/groups/wait.py",
        "        if not holds(self._condition, seen.values):\n            self._held_since, self._held_s = None, 0.0\n",
        "        if not holds(self._condition, seen.values):\n            pass\n",
        CONDITIONS,
    ),
    fault(
        "assert exits with 0 if another group meets the condition",
        "commands/groups/condition_report.py",
        "CONDITION_NOT_MET for row in rows if not row.is_met}",
        "CONDITION_NOT_MET for row in rows if not any(one.is_met for one in rows)}",
        CONDITIONS,
    ),
    # ---- lag
    fault(
        "the lag in time of a partition without lag is not 0",
        "watch/lag.py",
        "    if lag == 0:\n        return 0\n    return None if written_ms is None",
        "    return None if written_ms is None",
        LAG,
    ),
    fault(
        "a log that became shorter has a rate",
        "watch/lag.py",
        "    if len(known) < 2 or any(later[1] < before[1] for before, later in pairwise(known)):\n",
        "    if len(known) < 2:\n",
        LAG,
    ),
    fault(
        "a sum over partitions hides that one is not known",
        "watch/lag.py",
        "    return None if not known or any(value is None for value in known) else sum(value or 0.0 for value in known)\n",
        "    return None if not known else sum(value or 0.0 for value in known)\n",
        LAG,
    ),
    fault(
        "the oldest unread record is looked up below the log start",
        "client/admin/lag_facts.py",
        "            offset = max(row.current_offset, starts.get(TopicPartition(row.topic, row.partition), 0))\n",
        "            offset = row.current_offset\n",
        (*LAG, "tests/kgctl/commands/test_groups_lag.py"),
    ),
    # ---- verdicts
    fault(
        "a member is silent as soon as it is a little late",
        "watch/silence.py",
        "    return age_ms > min(HEARTBEAT_MS, session_ms * SILENT_SHARE_AT_MOST)\n",
        "    return True\n",
        ("tests/kgctl/watch/test_health.py", "tests/kgctl/watch/test_standing.py"),
    ),
    fault(
        "a quiet topic is stalled",
        "watch/health.py",
        "unread_s is not None and min(commit_s, unread_s) >= tracker.limits.stalled_s",
        "unread_s is not None and max(commit_s, unread_s) >= tracker.limits.stalled_s",
        ("tests/kgctl/watch/test_standing.py",),
    ),
    fault(
        "the lag of topics that nobody subscribes to any more counts",
        "watch/rows.py",
        "    return wanted is not None and row.consumer_id is None and row.topic not in wanted\n",
        "    return False\n",
        ("tests/kgctl/watch",),
    ),
    fault(
        "a lag that grows between two commits is LAGGING",
        "watch/health.py",
        "surplus > growth_s * rate_in and throughput.is_lag_rising()",
        "throughput.is_lag_rising()",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "a lag at the limit is LAGGING and OK in turn",
        "watch/health.py",
        "limits.growth_s * (GROWTH_ENDS if tracker.is_growing else 1.0)",
        "limits.growth_s",
        ("tests/kgctl/watch/test_health.py",),
    ),
    fault(
        "our own clock makes a commit old",
        "watch/tracker.py",
        "        return max(0, (self.least_ms or 0) - at_ms) / 1000\n",
        "        return max(0, self.wall_ms - at_ms) / 1000\n",
        ("tests/kgctl/watch/test_standing.py",),
    ),
    fault(
        "a group that has just joined never commits",
        "watch/health.py",
        "    if seen_s < tracker.limits.stalled_s:\n",
        "    if seen_s < 0:\n",
        ("tests/kgctl/watch/test_standing.py",),
    ),
    # ---- output
    fault(
        "an envelope shows a row that is nothing but an error",
        "render/machine.py",
        " for row in rows if id(row) not in lost],\n",
        " for row in rows],\n",
        FORMATS,
    ),
    fault(
        "a CSV file on a terminal has control characters",
        "render/machine.py",
        "[printable(str(value)) if escaped and value is not None else value for value in values]",
        "values",
        FORMATS,
    ),
    fault(
        "a column of names has a name twice",
        "render/machine.py",
        '    names = dict.fromkeys(str(name) for row in rows if (name := getattr(row, field)) not in (None, ""))\n',
        '    names = [str(name) for row in rows if (name := getattr(row, field)) not in (None, "")]\n',
        FORMATS,
    ),
    fault(
        "a table sends control characters to the terminal",
        "render/table.py",
        "    return printable(text)\n\n\ndef printable",
        "    return text\n\n\ndef printable",
        FORMATS,
    ),
    # ---- Kafka's tools
    fault(
        "failures with different exit codes have that of one of them",
        "compat/tool.py",
        "codes.pop() if len(codes) == 1 else int(bool(codes))",
        "codes.pop() if codes else 0",
        COMPAT,
    ),
    fault(
        "a wrong option of a tool exits with 0",
        "compat/tools.py",
        "        return Ended(USAGE, USAGE)\n",
        "        return Ended(0, 0)\n",
        COMPAT,
    ),
    fault(
        "a failure of kafka-consumer-groups exits with 0",
        "compat/consumer_groups/command.py",
        "        return Ended(error.exit_code, 0)\n",
        "        return Ended(0, 0)\n",
        COMPAT,
    ),
    # ---- the offline store
    fault(
        "a query may change something",
        "store/sql.py",
        "sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY",
        "sqlite3.SQLITE_OK",
        OFFLINE,
    ),
    fault(
        "a partition to which nothing was written has no log end",
        "store/offline.py",
        "        ends = {(topic.name, index): 0 for topic in self.directory.topics for index in range(topic.partition_count)}\n",
        "        ends: dict[tuple[str, int], int] = {}\n",
        OFFLINE,
    ),
    # ---- the start of a broker
    fault(
        "a broker is forked for a value that is an option",
        "commands/broker/early_start.py",
        'if not value or value.startswith("-") or',
        "if not value or",
        EARLY_START,
    ),
    # ---- completion
    fault(
        "completion offers names of yesterday",
        "commands/completion/name_cache.py",
        "if 0 <= age_s < _DAY_S else None",
        "if 0 <= age_s else None",
        COMPLETION,
    ),
    fault(
        "completion shares names between users",
        "commands/completion/live_names.py",
        '        target.text("sasl.username"),\n',
        "",
        COMPLETION,
    ),
    fault(
        "completion asks again at each key although the cluster is away",
        "commands/completion/live_names.py",
        "known.age_s < (FAILED_S if known.names is None else FRESH_S)",
        "known.names is not None and known.age_s < FRESH_S",
        COMPLETION,
    ),
    fault(
        "names for completion can be read by everybody",
        "commands/completion/name_cache.py",
        "os.O_EXCL, 0o600)",
        "os.O_EXCL, 0o644)",
        COMPLETION,
    ),
    # ---- contexts
    fault(
        "a read-only context lets a request through that changes something",
        "client/net/read_only.py",
        '    if name not in _READS and not name.startswith(("Describe", "List")) and not name.endswith("DescribeRequest"):\n',
        '    if name.startswith(("Create", "Delete")):\n',
        CONTEXTS,
    ),
    fault(
        "a project file is trusted after a change",
        "contexts/consent.py",
        "    if known == _digest(content):\n",
        "    if known:\n",
        CONTEXTS,
    ),
    fault(
        "a command that decides itself ignores the read-only context",
        "commands/shared/effects.py",
        "    if target.is_read_only:\n",
        "    if target.is_read_only and not target.must_confirm:\n",
        CONTEXTS,
    ),
    # ---- the dashboard in a browser
    fault(
        "a part of the token opens a page",
        "tui/web/guard.py",
        'hmac.compare_digest(path.removeprefix("/").partition("/")[0].encode(), token.encode())',
        'token.startswith(path.removeprefix("/").partition("/")[0])',
        WEB,
    ),
    fault(
        "a server of pages answers to names of other machines",
        "tui/web/server.py",
        '        if not is_loopback_host(request.headers.get("Host")):\n',
        '        if request.headers.get("Host") is None:\n',
        WEB,
    ),
    fault(
        "a websocket without an origin opens a session",
        "tui/web/guard.py",
        "    return origin is not None and origin.lower()",
        "    return origin is None or origin.lower()",
        WEB,
    ),
    fault(
        "the number of sessions is not limited",
        "tui/web/server.py",
        "        if len(self._sessions) >= MOST_SESSIONS:\n",
        "        if len(self._sessions) > MOST_SESSIONS:\n",
        WEB,
    ),
    fault(
        "pages can change groups without --allow-actions",
        "commands/ui.py",
        "        read_only = not allow_actions\n",
        "        read_only = read_only and not allow_actions\n",
        WEB,
    ),
    fault(
        "a session outlives its page",
        "tui/web/driver.py",
        "        if not self.exit_event.is_set():\n",
        "        if self.exit_event.is_set():\n",
        WEB,
    ),
    fault(
        "the dashboard looks at all objects with each answer about many groups",
        "tui/garbage.py",
        "            gc.collect(1)\n        gc.freeze()\n",
        "            gc.collect()\n",
        ("tests/kgctl/tui/test_background.py",),
    ),
    fault(
        "a full collection delays somebody who presses keys",
        "tui/garbage.py",
        " and now_s - self._used_s >= QUIET_S:\n",
        ":\n",
        ("tests/kgctl/tui/test_background.py",),
    ),
    fault(
        "garbage is never collected as usual again",
        "tui/garbage.py",
        "            gc.set_threshold(*self._usual)\n            gc.unfreeze()\n",
        "            gc.unfreeze()\n",
        ("tests/kgctl/tui/test_background.py",),
    ),
    fault(
        "others can read a recording",
        "tui/feed/recording_file.py",
        "os.O_EXCL | os.O_CLOEXEC, 0o600)",
        "os.O_EXCL | os.O_CLOEXEC, 0o644)",
        RECORDING,
    ),
    fault(
        "a recording is written through a link",
        "tui/feed/recording_file.py",
        "            path.unlink(missing_ok=True)\n        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL |",
        "            pass\n        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (0 if force else os.O_EXCL) |",
        RECORDING,
    ),
    fault(
        "a damaged line of a recording is believed",
        "tui/feed/recording_file.py",
        " if zlib.crc32(rest) == crc else None\n",
        "\n",
        RECORDING,
    ),
    fault(
        "a kill loses more than the last frame of a recording",
        "tui/feed/recording_file.py",
        "self._zip.compress(content) + self._zip.flush(zlib.Z_SYNC_FLUSH)",
        "self._zip.compress(content)",
        RECORDING,
    ),
    fault(
        "a full disk ends the dashboard that records",
        "tui/feed/recording.py",
        "            if is_first:\n                self.failed(self.failure)\n",
        "            raise\n",
        RECORDING,
    ),
    fault(
        "a title pushes its last part out of the frame",
        "tui/widgets/frame/panel.py",
        "            if place and longer.cell_length > width:\n",
        "            if not place and longer.cell_length > width:\n",
        ("tests/kgctl/tui/test_frame.py",),
    ),
    fault(
        "the panel with the focus has no mark",
        "tui/widgets/frame/panel.py",
        "glyphs.FOCUS if self.has_focus_within else",
        "glyphs.FOCUS if False else",
        ("tests/kgctl/tui/test_frame.py",),
    ),
    Fault(
        "a config with the name of a secret in capitals is shown",
        "secret_names.py",
        're.compile(rf"(?i){PATTERN}',
        're.compile(rf"{PATTERN}',
        ("tests/broker/test_secret_names.py",),
        "broker",
    ),
    Fault(
        "where a secret is counts as the secret",
        "secret_names.py",
        " and _OPEN.fullmatch(name) is None",
        "",
        ("tests/broker/test_secret_names.py",),
        "broker",
    ),
    fault(
        "an older offset follows a commit that waits",
        "commands/records/offset_commits.py",
        "        self.forget(wanted)",
        "        pass",
        ("tests/kgctl/commands/test_consume_delivery.py",),
    ),
    # ---- undo in the dashboard
    fault(
        "an undo does not do what its plan showed",
        "journal/taking_back.py",
        "if _work(again) != _work(undo):",
        "if again.errors:",
        ("tests/kgctl/tui/test_bulk_changes.py",),
    ),
    fault(
        "a change is taken back twice",
        "journal/taking_back.py",
        """    if problem := refusal(change):
        raise Precondition(problem)
    again""",
        "    again",
        ("tests/kgctl/tui/test_bulk_changes.py",),
    ),
)
