package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
)

// TestVerdictSaysStateCauseSinceWhenAndNextStep: for each state in which an operator may find the
// pipeline.
func TestVerdictSaysStateCauseSinceWhenAndNextStep(t *testing.T) {
	now := time.Date(2026, 11, 25, 14, 5, 0, 0, time.UTC)
	began := now.Add(-2*time.Minute - 5*time.Second)
	const since = " since 14:02:55Z (2 m 05 s): "
	waiting := uint64(0)
	table := func(change func(*Table)) []Table {
		st := Table{Source: "Orders", Target: "orders", State: "running", Retention: 86_000}
		change(&st)
		return []Table{{Source: "Users", State: "running", Retention: 86_000}, st}
	}
	why := func(st *Table, code ReasonCode, text string) { st.Explain(Reason{code, text}) }
	as := func(state string) func(*Table) {
		return func(st *Table) { st.State, st.Since, st.LogFormat = state, &began, 1 }
	}
	for name, c := range map[string]struct {
		o    Outlook
		want string
	}{
		"healthy": {Outlook{Tables: table(func(st *Table) { st.Latency, st.Pending = &Latency{0.4, 1.26}, &waiting })},
			"Healthy" + since + "2 tables are replicated, 99 % of the changes within 1.3 s, nothing waits. " +
				"Next: nothing to do."},
		"Bigtable away": {Outlook{
			Tables: table(func(st *Table) { why(st, WhyLateRead, "late") }), Reasons: 2,
			Failing: []Service{{Name: Bigtable, Since: began, Error: "code = Unavailable"}},
		}, "Bigtable away" + since + "Bigtable does not answer or refuses every call (code = Unavailable): the log keeps " +
			"what is read until it is back, and nothing is lost; and 1 further reason. " +
			"Next: `replicator check` tests the connection and the permissions."},
		"NATS away, and because of it others": {Outlook{
			Tables: table(func(*Table) {}), Reasons: 1,
			Failing: []Service{{Name: Bigtable, Since: began.Add(-time.Hour)}, {Name: NATS, Since: began, Error: "timeout"}},
		}, "NATS away" + since + "NATS does not answer or refuses every call (timeout): nothing is read or applied until " +
			"it is back, and DynamoDB keeps changes for 24 hours. " +
			"Next: `replicator check` tests the connection and the permissions."},
		"throttled": {Outlook{
			Tables: table(func(st *Table) { st.ThrottledSince = &began }), Reasons: 1,
			Failing: []Service{{Name: DynamoDB, Since: now, Throttled: true}},
		}, "Throttled" + since + "DynamoDB throttles the reading of Orders, which goes on slower. Next: look for other " +
			"readers of the stream: DynamoDB allows two per shard; `replicator status --watch`."},
		"no owner": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			why(st, WhyNoOwner, "no owner: no replicator carries the table")
		})}, "No owner" + since + "Orders: no replicator carries the table. Next: is a `replicator run` " +
			"running, and what does its log say? `replicator check` tests what it needs."},
		"halted": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Halts = "no permission", map[string]string{"bigtable": "no permission"}
			why(st, WhyHalted, "x")
		})}, "Halted" + since + "Orders is halted: no permission. " +
			"Next: mend the cause, then `replicator resume --table Orders`."},
		"halted at a refused change": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code, st.HeldEntry = "row refused", "refused", 17
			why(st, WhyHalted, "x")
		})}, "Halted" + since + "Orders is halted: row refused. Next: `replicator queue dump --table Orders --kind change " +
			"--from 17 --limit 10 --show-data` begins with what was refused; mend the cause, then " +
			"`replicator resume --table Orders`."},
		"halted by a setting": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "gc_rule is maxage=7d: `cbt …`", "premise"
			why(st, WhyHalted, "x")
		})}, "Halted" + since + "Orders is halted: gc_rule is maxage=7d: `cbt …`. " +
			"Next: the command that the cause names; writing goes on by itself within two minutes."},
		"halted by the volume": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "input/output error", "log_unread"
			why(st, WhyHalted, "x")
		})}, "Halted" + since + "Orders is halted: input/output error. " +
			"Next: bring the volume of the queue back; the table goes on by itself within a minute."},
		"halted without its row": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "the row is missing", "row_missing"
			why(st, WhyHalted, "x")
		})}, "Halted" + since + "Orders is halted: the row is missing. " +
			"Next: as the cause says; `replicator check` shows whether anything is left to do."},
		"gap": {Outlook{Reasons: 3, Tables: table(func(st *Table) {
			as("gap")(st)
			st.Gaps, st.Differing, st.DeadLetters = 2, 2, 1
		})}, "Gap" + since + "changes of Orders were lost before they were read (2 gaps); nothing is read behind them; and " +
			"2 further reasons. Next: `replicator gaps list --table Orders`, then `replicator repair --gaps --table Orders`."},
		"written behind a fence": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			st.Fence, st.State = &Fence{ID: "f1", Since: began.Add(-time.Hour)}, WrittenBehindFence
			st.BehindFence = &BehindFence{Changes: 2, Since: began}
			why(st, WhyBehindFence, "x")
		})}, "Written behind the fence" + since + "2 changes of Orders were made in DynamoDB behind the fence of cutover " +
			"f1, and Bigtable does not get them. Next: stop the writers; `replicator cutover --undo` lets Bigtable have them, " +
			"then cut over again."},
		"written behind a certified fence": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			st.Fence, st.State = &Fence{ID: "f1", Certified: &now}, WrittenBehindFence
			st.BehindFence = &BehindFence{Changes: 1, Since: began}
			why(st, WhyBehindFence, "x")
		})}, "Written behind the fence" + since + "1 change of Orders was made in DynamoDB behind the fence of cutover f1, " +
			"and Bigtable does not get it. Next: let the writers write to Bigtable, and carry these items over by the " +
			"application (`replicator status --table Orders` names their hashes)."},
		"certified": {Outlook{Tables: table(func(st *Table) {
			st.Fence, st.State = &Fence{ID: "f1", Since: began, Certified: &now}, "fenced"
		})}, "Fenced" + since + "Orders is fenced for cutover f1, which is certified: the application may write to " +
			"Bigtable. Next: once it does, `replicator table retire --table Orders`; to go back before, `replicator " +
			"cutover --undo`."},
		"full log": {Outlook{
			Tables:  table(func(st *Table) { st.PauseReason = "83 % of its limit in use"; why(st, WhyReadingPauses, "x") }),
			Reasons: 1, Failing: []Service{{Name: Bigtable, Since: began}},
		}, "Log full" + since + "reading of Orders pauses: 83 % of its limit in use, because Bigtable is away; unread " +
			"changes are lost in 23 h 53 m. Next: bring Bigtable back (`replicator check`), or " +
			"raise `queue.max_bytes` and restart."},
		"copying": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("copying")(st)
			st.Copy = &resync.Progress{Percent: 41, Items: 10, Rate: 5, ETA: -1}
			why(st, WhyCopying, "x")
		})}, "Copying" + since + "older items of Orders are copied beside the stream: 41 % · 10 items · 5/s. " +
			"Next: wait; `replicator copy pause --table Orders` holds it."},
		"dead letters": {
			Outlook{Reasons: 1, Tables: table(func(st *Table) { st.DeadLetters = 3; why(st, WhyLetters, "x") })},
			"Dead letters" + since + "3 changes of Orders were refused for good and wait as dead letters; the rest goes on. " +
				"Next: `replicator dlq list --table Orders`.",
		},
		"one dead letter": {
			Outlook{Reasons: 1, Tables: table(func(st *Table) { st.DeadLetters = 1; why(st, WhyLetters, "x") })},
			"Dead letters" + since + "1 change of Orders was refused for good and waits as a dead letter; the rest goes on. " +
				"Next: `replicator dlq list --table Orders`.",
		},
		"paused": {Outlook{Reasons: 1, Tables: table(func(st *Table) { st.State = "paused"; why(st, WhyPaused, "x") })},
			"Paused" + since + "Orders is paused by an operator; DynamoDB keeps changes for 24 hours. " +
				"Next: `replicator resume --table Orders`."},
		"several halted with one code": {Outlook{Reasons: 1, Tables: []Table{
			{Source: "Carts", State: "halted", Halt: "no permission", Code: "error", Since: &began},
			{Source: "Idle"}, {Source: "Users", State: "halted", Halt: "no table", Code: "missing", Since: &began},
			{Source: "Orders", State: "halted", Halt: "no permission", Code: "error", Since: &began},
		}}, "Halted" + since + "2 tables are halted, Carts because: no permission. " +
			"Next: mend the cause: each table is tried again every minute."},
		"halted because of what is stored": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "table Orders was created again; end it", "log_refused"
		})}, "Halted" + since + "Orders is halted: table Orders was created again; end it. Next: as the cause says; " +
			"`replicator check` shows whether anything is left to do."},
		"halted without a target": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "table not found; `replicator schema --apply` makes it", "missing"
		})}, "Halted" + since + "Orders is halted: table not found; `replicator schema --apply` makes it. " +
			"Next: `replicator schema --apply`; the table goes on by itself within a minute; what was deleted has taken its " +
			"cells along, and `replicator verify` names them."},
		"vanished": {Outlook{Reasons: 2, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code, st.Ended = "describe table: not found", "source_gone", true
			st.Explain(Reason{WhyVanished, "gone"}, Reason{WhyHalted, "not found"}, Reason{WhyNoOwner, "no owner"})
		})}, "Deleted" + since + "Orders has vanished: DynamoDB has no table of this name; and 1 further reason. " +
			"Next: `replicator table retire --table Orders`."},
		"vanished, and perhaps not read to its end": {Outlook{Reasons: 2, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "describe table: not found", "source_gone"
			st.Explain(Reason{WhyVanished, "gone"}, Reason{WhyHalted, "not found"})
		})}, "Deleted" + since + "Orders has vanished, and the last changes in its stream were perhaps not read: a " +
			"process that starts after the deletion does not know the stream's table; and 1 further reason. " +
			"Next: what Bigtable has is the table as of `applied_through` in `replicator status --json`; when that is noted, " +
			"`replicator table retire --table Orders`."},
		"vanished, and halted before its end": {Outlook{Reasons: 2, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.Code = "no permission", "target_denied"
			st.Explain(Reason{WhyVanished, "gone"}, Reason{WhyHalted, "no permission"})
		})}, "Halted" + since + "Orders is halted: no permission; and 1 further reason. " +
			"Next: mend the cause, then `replicator resume --table Orders`."},
		"vanished, and still read": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			why(st, WhyVanished, "gone")
		})}, "Deleted" + since + "Orders has vanished: DynamoDB has no table of this name. Next: wait: what is left in its " +
			"stream is read and applied first; then `replicator status` says how to retire it."},
		"vanished, and read to its end": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			why(st, WhyStreamOff, "x")
			st.Ended = true
			st.Vanish()
		})}, "Deleted" + since + "Orders has vanished: DynamoDB has no table of this name. " +
			"Next: everything is applied: take it out of the configuration, restart `replicator run`, then " +
			"`replicator table retire --table Orders`."},
		"without its tags": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			why(st, WhyUntagged, "other tags")
		})}, "Not chosen" + since + "Orders is no longer chosen: its tags match no selection; it is replicated until " +
			"except names it. Next: give it its tags back; or write it under `except`, restart, and then " +
			"`replicator table retire --table Orders`."},
		"stream disabled": {
			Outlook{Reasons: 1, Tables: table(func(st *Table) { why(st, WhyStreamOff, "the stream is disabled") })},
			"Stream disabled" + since + "Orders: the stream is disabled. Next: `aws dynamodb update-table --table-name Orders " +
				"--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES`: reading goes on by itself, and a " +
				"gap is recorded for what was written meanwhile; was the table deleted, `replicator status` shows that within " +
				"a minute.",
		},
		"a reason of its own": {
			Outlook{Reasons: 1, Tables: table(func(st *Table) { why(st, WhyChosenElse, "chosen otherwise") })},
			"Not ready" + since + "Orders: chosen otherwise. Next: `replicator check` tests what the table depends on.",
		},
		"an archive without its bucket": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			st.Halts, st.Halt, st.HaltSink = map[string]string{"archive.objects": "no bucket"}, "no bucket", "archive.objects"
			st.HaltSince = &began
			why(st, WhyHalted, "sink archive.objects is halted: no bucket")
		})}, "Archive halted" + since + "the archive of Orders is halted (archive.objects) and tried again every minute, " +
			"while Bigtable goes on; the log keeps what is to be archived: no bucket. " +
			"Next: mend the cause; `replicator resume --table Orders` tries at once."},
		"halted before it has a log": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Halt, st.LogFormat = "no permission", 0
		})}, "Halted" + since + "Orders is halted: no permission. " +
			"Next: mend the cause: each table is tried again every minute."},
		"a table that has only an archive": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("halted")(st)
			st.Target, st.Halt, st.Halts = "", "no bucket", map[string]string{"archive.objects": "no bucket"}
		})}, "Halted" + since + "Orders is halted: no bucket. " +
			"Next: mend the cause, then `replicator resume --table Orders`."},
		"a gap that only the archive has": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			st.Differing, st.OnlyArchiveDiffers = 1, true
			why(st, WhyDiffers, "x")
		})}, "Differs" + since + "the archive of Orders lacks what 1 gap lost; Bigtable has it. " +
			"Next: `replicator gaps heal --sink archive --from-export …`, or `replicator gaps clear ID --sink archive`, " +
			"for each of `replicator gaps list --table Orders`."},
		"late because of a throttle": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			st.ThrottledSince = &began
			why(st, WhyLateRead, "nothing shows that what was written in the last 3m0s has been read")
		})}, "Throttled" + since + "DynamoDB throttles the reading of Orders, which goes on slower: nothing " +
			"shows that what was written in the last 3m0s has been read. Next: look for other readers of the " +
			"stream: DynamoDB allows two per shard; `replicator status --watch`."},
		"several are throttled, and go on": {Outlook{Tables: []Table{
			{Source: "Cart", State: "running", Retention: 86_000, ThrottledSince: &began},
			{Source: "Bin", State: "running", Retention: 86_000},
			{Source: "Log", State: "running", Retention: 86_000, ThrottledSince: &began},
			{Source: "User", State: "running", Retention: 86_000, ThrottledSince: &began},
		}}, "Throttled" + since + "DynamoDB throttles the reading of Cart and of 2 further tables, which go on slower. " +
			"Next: look for other readers of the stream: DynamoDB allows two per shard; `replicator status --watch`."},
		"not ready before slow": {Outlook{Reasons: 1, Tables: []Table{
			{Source: "Users", State: "running", Retention: 86_000, ThrottledSince: &began},
			{Source: "Orders", State: "running", Retention: 86_000, DeadLetters: 1},
		}}, "Dead letters" + since + "1 change of Orders was refused for good and waits as a dead letter; " +
			"the rest goes on. Next: `replicator dlq list --table Orders`."},
		"the worst table": {Outlook{Reasons: 2, Tables: []Table{
			{Source: "Users", State: "running", Retention: 9000}, {Source: "Orders", State: "running", Retention: 3600},
			{Source: "Carts", State: "running", Retention: 12000},
		}}, "Retention low" + since + "unread changes of Orders are lost in 1 h 00 m; and 1 further reason. " +
			"Next: `replicator status --table Orders` says what holds reading up."},
		"paused by": {Outlook{Reasons: 1, Tables: table(func(st *Table) {
			as("paused")(st)
			st.PausedBy = "ann@host"
			why(st, WhyPaused, "x")
		})}, "Paused" + since + "Orders is paused by ann@host; DynamoDB keeps changes for 24 hours. " +
			"Next: `replicator resume --table Orders`."},
		"a reason of no table": {Outlook{
			Tables: table(func(*Table) {}), Reasons: 1, Notes: []string{"tables: DynamoDB cannot be listed"},
		}, "Not ready" + since + "tables: DynamoDB cannot be listed. Next: `replicator check`."},
		"a throttled service, and no table that shows it": {Outlook{
			Tables: table(func(*Table) {}), Reasons: 1,
			Failing: []Service{{Name: DynamoDB, Since: began, Error: "ThrottlingException", Throttled: true}},
		}, "Throttled" + since + "DynamoDB throttles calls (ThrottlingException), which are tried again. " +
			"Next: `replicator status --watch`; look for other callers of the account."},
		"no table, and a service away": {
			Outlook{Reasons: 1, Failing: []Service{{Name: NATS, Since: began, Error: "timeout"}}},
			"NATS away" + since + "NATS does not answer or refuses every call (timeout): nothing is read or applied until " +
				"it is back, and DynamoDB keeps changes for 24 hours. " +
				"Next: `replicator check` tests the connection and the permissions.",
		},
		"all elsewhere": {
			Outlook{Tables: table(func(st *Table) { st.State, st.Owner = StandBy, "pod-b" })[1:]},
			"Standing by" + since + "1 table is carried by pod-b, and how it is is not known here. Next: `replicator status` " +
				"tells it of all tables, as their owner's page does.",
		},
		"some elsewhere": {
			Outlook{Tables: table(func(st *Table) { st.State, st.Owner = StandBy, "pod-b" })},
			"Standing by" + since + "1 table is carried by pod-b, and how it is is not known here; here 1 table is " +
				"replicated, nothing waits. Next: `replicator status` tells it of all tables, as their owner's page does.",
		},
		"nothing known": {Outlook{}, "Starting" + since + "no table is configured or known yet. Next: `replicator check`."},
	} {
		v := Judge(c.o)
		var tracker Tracker
		tracker.Note(&v, began) // what the state itself does not tell
		if diff := cmp.Diff(c.want, v.Line(now)); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", name, diff)
		}
		if v.Ready != (c.o.Reasons == 0 && len(c.o.Tables) > 0) {
			t.Errorf("%s: ready %v with %d reasons", name, v.Ready, c.o.Reasons)
		}
	}
}

// TestTrackerKeepsTheBeginOfAState: another table in the same state is another trouble.
func TestTrackerKeepsTheBeginOfAState(t *testing.T) {
	at := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	var tracker Tracker
	for i, c := range []struct {
		v    Verdict
		want int // seconds
	}{
		{Verdict{State: StateHealthy}, 0}, {Verdict{State: StateHealthy}, 0},
		{Verdict{State: StateLetters, Table: "Orders"}, 2}, {Verdict{State: StateLetters, Table: "Orders"}, 2},
		{Verdict{State: StateLetters, Table: "Users"}, 4}, {Verdict{State: StateHealthy}, 5},
	} {
		tracker.Note(&c.v, at.Add(time.Duration(i)*time.Second))
		if got := int(c.v.Since.Sub(at).Seconds()); got != c.want {
			t.Errorf("look %d: since second %d, want %d", i, got, c.want)
		}
		alone := Verdict{State: c.v.State, Table: c.v.Table}
		alone.Adopt(&c.v)
		other := Verdict{State: StateLate}
		other.Adopt(&c.v)
		if alone.Since == nil || other.Since != nil {
			t.Errorf("look %d: a command adopts %v for the same state, %v for another", i, alone.Since, other.Since)
		}
	}
	// What the verdict does not name goes on beside it.
	for i, v := range []Verdict{
		{State: StateHalted, Table: "Orders", troubles: []trouble{{StateHalted, "Orders"}, {StateLetters, "Carts"}}},
		{State: StateLetters, Table: "Carts", troubles: []trouble{{StateLetters, "Carts"}}},
	} {
		tracker.Note(&v, at.Add(time.Duration(20+10*i)*time.Second))
		if i == 1 && !v.Since.Equal(at.Add(20*time.Second)) {
			t.Errorf("the dead letters wait since %v", v.Since)
		}
	}
	at = at.Add(10 * time.Minute)
	halt := func(second int) Verdict {
		v := Verdict{State: StateHalted, Table: "Orders", Since: new(time.Time)}
		*v.Since = at.Add(time.Duration(second) * time.Second) // of the last try
		tracker.Note(&v, *v.Since)
		return v
	}
	first := halt(100)
	tracker.Note(&Verdict{State: StateHealthy}, at.Add(159*time.Second)) // a try
	if again := halt(160); !again.Since.Equal(*first.Since) {
		t.Errorf("a halt that was tried again lasts since %v, want %v", again.Since, first.Since)
	}
	tracker.Note(&Verdict{State: StateHealthy}, at.Add(161*time.Second))
	if later := halt(300); !later.Since.Equal(at.Add(300 * time.Second)) {
		t.Errorf("a halt after a while lasts since %v", later.Since)
	}
	old := Verdict{State: StateHealthy, Since: &at}
	if line := old.Line(at.Add(49 * time.Hour)); !strings.Contains(line, "since 2026-11-25 14:10:00Z (49 h 00 m)") {
		t.Error(line)
	}
	if line := old.Line(at.Add(-time.Second)); !strings.HasPrefix(line, "Healthy since 14:10:00Z: ") {
		t.Errorf("a clock that was set back: %s", line)
	}
}

// A halt of the archive stands beside a table that goes on, and not beside one that Bigtable halts,
// or one that is archived and no more.
func TestHaltOfTheArchiveAlone(t *testing.T) {
	archive := map[string]string{checkpoint.SinkArchive: "no bucket"}
	both := map[string]string{checkpoint.SinkArchive: "no bucket", checkpoint.SinkBigtable: "no permission"}
	for i, c := range []struct {
		target string
		halts  map[string]string
		want   []string
	}{
		{"orders", archive, []string{StateSinkHalted}},
		{"orders", both, []string{StateHalted}},
		{"", archive, []string{StateHalted}},
	} {
		v := Judge(Outlook{Reasons: 1, Tables: []Table{{Source: "Orders", Target: c.target, Halts: c.halts, Retention: -1}}})
		var got []string
		for _, x := range v.troubles {
			got = append(got, x.state)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("case %d (-want +got):\n%s", i, diff)
		}
	}
}
