package status

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// provoked is a state of a verdict with the smallest history that leads to it.
type provoked struct {
	state string
	code  ReasonCode // why the table is not ready; "": it is ready
	halt  string     // the code of its halt
	step  step
	since time.Time // zero: nothing records it, and it is when the state was observed first

	seen   func(x *Seen)  // what the log holds, beside a table that is well
	knows  func(t *Table) // what its owner knows beside the log
	others []Table
	failed []Service
	notes  []string
}

// The times of a history: provokedAt is now, and what happens in it began a minute before.
var (
	provokedAt = time.Date(2026, 11, 25, 14, 5, 0, 0, time.UTC)
	beganAt    = provokedAt.Add(-time.Minute)
	longAgo    = provokedAt.Add(-19 * time.Hour)
)

// inLog returns a change of the state of the log.
func inLog(f func(s *checkpoint.State)) func(*Seen) {
	return func(x *Seen) { f(x.State); x.State.Reindex() }
}

// haltOf halts a sink with a code.
func haltOf(sink, code string) func(*Seen) {
	return inLog(func(s *checkpoint.State) {
		s.Halts = map[string]*checkpoint.Halt{
			sink: {Sink: sink, Code: code, Reason: "no permission", At: change.MillisOf(beganAt)},
		}
	})
}

// lost adds a gap.
func lost(g checkpoint.Gap) func(*Seen) {
	return inLog(func(s *checkpoint.State) {
		g.Feed, g.Since, g.Found = change.Feed{Stream: "arn", Shard: "s"}, change.MillisOf(beganAt), change.MillisOf(beganAt)
		g.Reason, g.Sinks = "trimmed", []string{"bigtable"}
		s.Gaps = append(s.Gaps, g)
	})
}

// readThrough makes reading and applying stand since a time.
func readThrough(at time.Time) func(*Seen) {
	return func(x *Seen) { x.State = open(provokedAt.UnixMilli(), at.UnixMilli()) }
}

func because(code ReasonCode) func(*Table) {
	return func(t *Table) { t.Add(Reason{code, "as its owner knows"}) }
}

func fenced(f checkpoint.Fence) func(*Seen) {
	return inLog(func(s *checkpoint.State) {
		f.ID, f.Seq, f.Last, f.At, f.BehindSince = "f1", 6, 5, change.MillisOf(beganAt), change.MillisOf(beganAt)
		s.Fence = &f
	})
}

func copying(c checkpoint.CopyState) func(*Seen) {
	return inLog(func(s *checkpoint.State) {
		c.ID, c.Why, c.Parts, c.Began = "c1", checkpoint.CopyBackfill, 4, change.MillisOf(beganAt)
		s.Copy = &c
	})
}

func away(name string) []Service { return []Service{{Name: name, Since: beganAt, Error: "refused"}} }

func refuses(name, hint string) []Service {
	return []Service{{Name: name, Since: beganAt, Error: "expired", Refuses: true, Hint: hint}}
}

func ended(s *checkpoint.State) {
	s.Streams[0].Disabled = true
	s.Shards["s"].Phase, s.Shards["s"].LastAlive = checkpoint.PhaseFinished, s.Listed
}

// provocations has a row for each state, and for each of its next steps.
var provocations = []provoked{
	{state: StateHealthy, step: stepNothing},
	{state: StateHealthy, step: stepNotCopied, knows: func(t *Table) { t.NotCopied = 7 }},
	{state: StateGap, code: WhyGap, step: stepGap, since: beganAt, seen: lost(checkpoint.Gap{})},
	{state: StateFull, code: WhyReadingPauses, step: stepFull,
		seen: func(x *Seen) { x.Pressure = queue.Pressure{Reason: "83 % of its limit in use"} }},
	{state: StateFull, code: WhyReadingPauses, step: stepFullAway, failed: away(Bigtable),
		seen: func(x *Seen) { x.Pressure = queue.Pressure{Reason: "83 % of its limit in use"} }},
	{state: StateHalted, code: WhyHalted, halt: "error", step: stepHalt, since: beganAt,
		seen: haltOf(outcome.Pipeline, "error")},
	{state: StateHalted, code: WhyHalted, halt: "target_denied", step: stepHalt, since: beganAt,
		seen: haltOf(checkpoint.SinkBigtable, "target_denied")},
	{state: StateHalted, code: WhyHalted, halt: "value", step: stepHaltHeld, since: beganAt,
		seen: inLog(func(s *checkpoint.State) {
			s.Halts = map[string]*checkpoint.Halt{checkpoint.SinkBigtable: {
				Sink: checkpoint.SinkBigtable, Code: "value", Seq: 7, Held: true, At: change.MillisOf(beganAt),
			}}
		})},
	{state: StateHalted, code: WhyHalted, halt: "error", step: stepHaltMany, since: beganAt,
		seen: haltOf(outcome.Pipeline, "error"), others: []Table{{Source: "Users", State: "halted", Code: "error"}}},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeMissing, step: stepHaltMissing, since: beganAt,
		seen: haltOf(checkpoint.SinkBigtable, outcome.CodeMissing)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodePremise, step: stepHaltPremise, since: beganAt,
		seen: haltOf(checkpoint.SinkBigtable, outcome.CodePremise)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeLogUnread, step: stepHaltUnread, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeLogUnread)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeMapping, step: stepHaltMapping, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeMapping)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeLogLost, step: stepHaltLost, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeLogLost)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeLogOlder, step: stepHaltLost, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeLogOlder)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeRefused, step: stepHaltRefused, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeRefused)},
	{state: StateHalted, code: WhyHalted, halt: outcome.CodeRowMissing, step: stepHaltRefused, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeRowMissing)},
	{state: Bigtable + " " + StateAway, step: stepAway, since: beganAt, failed: away(Bigtable)},
	{state: NATS + " " + StateAway, step: stepAway, since: beganAt, failed: away(NATS)},
	{state: DynamoDB + " " + StateAway, step: stepAway, since: beganAt, failed: away(DynamoDB)},
	{state: Bigtable + " " + StateRefuses, step: stepAway, since: beganAt, failed: refuses(Bigtable, "")},
	{state: DynamoDB + " " + StateRefuses, step: stepRefused, since: beganAt, failed: refuses(DynamoDB, "{hint}")},
	{state: StateRetention, code: WhyLowRetention, step: stepRetention, seen: readThrough(longAgo)},
	{state: StateRetention, code: WhyLowRetention, step: stepThrottled, seen: readThrough(longAgo),
		knows: func(t *Table) { t.ThrottledSince = &beganAt }},
	{state: StateNoOwner, code: WhyNoOwner, step: stepNoOwner,
		seen: inLog(func(s *checkpoint.State) { s.Released = true })},
	{state: StateStarting, code: WhyNotStarted, step: stepStarting, seen: func(x *Seen) {
		x.State, x.Carried = checkpoint.NewState(), true
	}},
	{state: StateStarting, code: WhyNoLog, step: stepNoOwner, knows: because(WhyNoLog)},
	{state: StateSinkHalted, code: WhyHalted, halt: "archive_missing", step: stepSinkHalted, since: beganAt,
		seen: haltOf("archive.objects", "archive_missing")},
	{state: StatePaused, code: WhyPaused, step: stepPaused, since: beganAt, seen: inLog(func(s *checkpoint.State) {
		s.Paused, s.Pausing.At, s.Pausing.By = true, change.MillisOf(beganAt), "ann@host"
	})},
	{state: StateHealing, code: WhyResyncing, step: stepHealing, since: beganAt, seen: inLog(func(s *checkpoint.State) {
		s.Resync = &checkpoint.PendingResync{ID: "r1", Asked: change.MillisOf(beganAt)}
	})},
	{state: StateHealing, code: WhyResyncing, step: stepHealingRefused, since: beganAt,
		seen: inLog(func(s *checkpoint.State) {
			s.Resync = &checkpoint.PendingResync{ID: "r1", Asked: change.MillisOf(beganAt)}
		}), knows: func(t *Table) { t.Resync = &resync.WholeStatus{Doing: "open", Refused: 2} }},
	{state: StateBehind, code: WhyBehindFence, step: stepBehind, since: beganAt,
		seen: fenced(checkpoint.Fence{Behind: 1})},
	{state: StateBehind, code: WhyBehindFence, step: stepBehindCertified, since: beganAt,
		seen: fenced(checkpoint.Fence{Behind: 1, Certified: 1})},
	{state: StateDiffers, code: WhyDiffers, step: stepDiffers, since: beganAt, seen: lost(checkpoint.Gap{Accepted: true})},
	{state: StateDiffers, code: WhyDiffers, step: stepDiffersArchive, since: beganAt.Add(-5 * time.Second),
		seen: func(x *Seen) {
			x.State.Marks["archive"] = checkpoint.Mark{Seq: 5}
			lost(checkpoint.Gap{Accepted: true})(x)
			x.State.Gaps[0].Sinks = []string{"archive"}
		}},
	{state: StateDiffers, step: stepDiffersContinual, knows: func(t *Table) {
		t.Verify = &continuous.Status{Different: 1, File: "d.jsonl"}
	}},
	{state: StateDoubt, code: WhyUnconfirmed, step: stepDoubt, since: beganAt,
		seen: lost(checkpoint.Gap{Accepted: true, Doubt: "unconfirmed"})},
	{state: StateLetters, code: WhyLetters, step: stepLetters, since: beganAt,
		seen: func(x *Seen) { x.Letters, x.LettersSince = 1, beganAt }},
	{state: StateDeleted, code: WhyVanished, step: stepDeletedRead, knows: (*Table).Vanish},
	{state: StateDeleted, code: WhyVanished, step: stepDeletedApplied, seen: inLog(ended), knows: (*Table).Vanish},
	{state: StateDeleted, code: WhyVanished, halt: outcome.CodeSourceGone, step: stepDeletedUnread, since: beganAt,
		seen: haltOf(outcome.Pipeline, outcome.CodeSourceGone)},
	{state: StateDeleted, code: WhyVanished, halt: outcome.CodeSourceGone, step: stepDeletedRetire, seen: func(x *Seen) {
		haltOf(outcome.Pipeline, outcome.CodeSourceGone)(x)
		inLog(ended)(x)
	}},
	{state: StateGone, code: WhyUntagged, step: stepNotChosen, knows: because(WhyUntagged)},
	{state: StateStreamOff, code: WhyStreamOff, step: stepStreamOff,
		seen: inLog(func(s *checkpoint.State) { s.Streams[0].Disabled = true })},
	{state: StateLate, code: WhyLateRead, step: stepLate, seen: readThrough(provokedAt.Add(-10 * time.Minute))},
	{state: StateLate, code: WhyLateApplied, step: stepLate, seen: inLog(func(s *checkpoint.State) {
		s.LastFrame, s.Watermarks[0].Time = 9, change.MillisOf(provokedAt.Add(-10*time.Minute))
	})},
	{state: StateThrottled, code: WhyLateRead, step: stepThrottled, since: beganAt,
		seen: readThrough(provokedAt.Add(-10 * time.Minute)), knows: func(t *Table) { t.ThrottledSince = &beganAt }},
	{state: StateThrottled, step: stepThrottled, since: beganAt, knows: func(t *Table) { t.ThrottledSince = &beganAt }},
	{state: StateThrottled, step: stepThrottledCalls, since: beganAt,
		failed: []Service{{Name: DynamoDB, Since: beganAt, Throttled: true}}},
	{state: StateCopying, code: WhyCopying, step: stepCopying, since: beganAt, seen: copying(checkpoint.CopyState{})},
	{state: StateCopying, code: WhyCopying, step: stepCopyHeld, since: beganAt,
		seen: copying(checkpoint.CopyState{Paused: true})},
	{state: StateCopying, code: WhyCopyDue, step: stepCopyBegins,
		seen: inLog(func(s *checkpoint.State) { s.Backfill = checkpoint.FromScan })},
	{state: StateNotReady, code: WhyPremise, step: stepHaltPremise, knows: because(WhyPremise)},
	{state: StateNotReady, code: WhyOpenUnread, step: stepStarting, knows: because(WhyOpenUnread)},
	{state: StateNotReady, code: WhyNotStored, step: stepNotStored, knows: because(WhyNotStored)},
	{state: StateNotReady, code: WhyChosenElse, step: stepNotReady, knows: because(WhyChosenElse)},
	{state: StateNotReady, step: stepNote, notes: []string{"tables: DynamoDB cannot be listed"}},
	{state: StateFenced, step: stepFenced, since: beganAt, seen: fenced(checkpoint.Fence{})},
	{state: StateFenced, step: stepCertified, since: beganAt, seen: fenced(checkpoint.Fence{Certified: 1})},
	{state: StateElsewhere, step: stepElsewhere, knows: func(t *Table) { t.State = StandBy }},
}

// whole returns the status after the history.
func (p *provoked) whole() Whole {
	x := Seen{
		Source: "Orders", Target: "orders", State: open(provokedAt.UnixMilli(), provokedAt.UnixMilli()),
		Now: change.MillisOf(provokedAt), ClaimTTL: 15 * time.Second, Retry: time.Minute,
	}
	if p.seen != nil {
		p.seen(&x)
	}
	t := Of(x)
	if p.knows != nil {
		p.knows(&t)
	}
	w := Summarize("shop", append([]Table{t}, p.others...))
	if len(p.failed) > 0 {
		w.Fail([]string{p.failed[0].Name + " fails"}, p.failed)
	}
	w.Explain(p.notes)
	return w
}

// TestEachStateHasItsCodeItsSinceAndItsNextStep provokes each state by the smallest history.
func TestEachStateHasItsCodeItsSinceAndItsNextStep(t *testing.T) {
	for _, p := range provocations {
		w := p.whole()
		st := &w.Tables[0]
		name := fmt.Sprintf("%s (%s)", p.state, p.step)
		if w.Verdict.State != p.state || w.Verdict.Next != p.step.of(st) {
			t.Errorf("%s: %s", name, w.Verdict.Line(provokedAt))
		}
		slow := p.code == "" && len(p.failed)+len(p.notes) == 0
		if w.Ready != slow || w.Verdict.Ready != slow || p.code != "" && !st.Has(p.code) || st.Code != p.halt {
			t.Errorf("%s: ready %v, not ready because %+v, halted with %q", name, w.Ready, st.Why, st.Code)
		}
		var tracker Tracker
		tracker.Note(&w.Verdict, provokedAt)
		want := p.since
		if want.IsZero() {
			want = provokedAt
		}
		if !w.Verdict.Since.Equal(want) {
			t.Errorf("%s: since %v, want %v", name, w.Verdict.Since, want)
		}
	}
}

// TestEachStateIsProvokedAndDocumented compares the states of verdict.go and the steps with the
// rows above, and with the table of docs/operations.md.
func TestEachStateIsProvokedAndDocumented(t *testing.T) {
	states, done := map[string]bool{}, map[step]bool{stepNoTable: true} // of no table at all: TestVerdict…
	for _, p := range provocations {
		states[p.state], done[p.step] = true, true
	}
	for s := range steps {
		if !done[s] {
			t.Errorf("no row has the step %s", s)
		}
	}
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range statesInCode(t) {
		names := []string{state}
		switch state {
		case StateAway:
			names = []string{Bigtable + " " + state, NATS + " " + state, DynamoDB + " " + state}
		case StateRefuses:
			names = []string{Bigtable + " " + state, DynamoDB + " " + state}
		}
		for _, name := range names {
			if !states[name] {
				t.Errorf("no row provokes the state %q", name)
			}
		}
		v := Verdict{State: names[0]}
		page := strings.TrimPrefix(v.Runbook(), "operations.md")
		if line := "\n| `" + state + "` | "; !strings.Contains(string(text), line) {
			t.Errorf("docs/operations.md has no line %q in its table of states", line)
		} else if _, line, _ := strings.Cut(string(text), line); page != "" &&
			!strings.Contains(strings.SplitN(line, "\n", 2)[0], "("+page+")") {
			t.Errorf("the line of %q in docs/operations.md does not lead to %s, as the status page does", state, page)
		}
	}
}

// statesInCode returns the values of the constants State… of verdict.go.
func statesInCode(t *testing.T) (states []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "verdict.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "State") {
			return true
		}
		state, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Error(err)
		}
		states = append(states, state)
		return true
	})
	if len(states) < 20 {
		t.Fatalf("only %d states are found: %q", len(states), states)
	}
	return states
}
