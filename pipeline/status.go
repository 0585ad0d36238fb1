package pipeline

import (
	"fmt"
	"math"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// TableStatus is what a table's log says about the table. Everybody who folds the log can say it: the daemon
// and the status command say the same.
type TableStatus struct {
	Source string `json:"source"`
	Target string `json:"target"`
	State  string `json:"state"` // running, paused, halted, gap, waiting

	Shards struct {
		Open    int `json:"open"`
		Closed  int `json:"closed"`
		Waiting int `json:"waiting"`
		Done    int `json:"done"`
	} `json:"shards"`

	SourceLag      float64    `json:"source_lag_s"`     // since everything was read into the log; -1 unknown
	AppliedLag     float64    `json:"applied_lag_s"`    // since everything was applied by every sink; -1 unknown
	AppliedThrough *time.Time `json:"applied_through"`  // everything written before it is in Bigtable
	Retention      float64    `json:"retention_left_s"` // until the oldest unread record may be lost; -1 unknown
	Proof          string     `json:"proof"`            // assumed: as far as empty reads show
	Queue          QueueUse   `json:"queue"`
	DeadLetters    int        `json:"dead_letters"`
	Gaps           int        `json:"gaps"`
	Accepted       int        `json:"gaps_accepted"`
	Owner          string     `json:"owner"`
	Epoch          uint64     `json:"epoch"`
	LogFormat      int        `json:"log_format"`
	Changes        uint64     `json:"changes"`
	Foreign        uint64     `json:"foreign_messages"`
	ClockAhead     float64    `json:"clock_ahead_s"`
	Halt           string     `json:"halt,omitempty"`
	Code           string     `json:"halt_code,omitempty"`
	Reasons        []string   `json:"reasons,omitempty"` // why it is not ready
}

// QueueUse is how full a table's log is.
type QueueUse struct {
	Bytes     uint64     `json:"bytes"`
	Limit     uint64     `json:"limit"`
	Oldest    *time.Time `json:"oldest"`
	HoursLeft float64    `json:"hours_left"` // -1: no limit in sight
}

// Seen is what a status is made of.
type Seen struct {
	Source, Target string
	State          *checkpoint.State
	Pressure       queue.Pressure
	Letters        int
	Now            int64         // service's clock as well as it is known, unix ms
	ClaimTTL       time.Duration // after three of them without a sign of life there is no owner
}

// StatusOf says how a table is. It is a function of what was seen.
func StatusOf(x Seen) TableStatus {
	s := x.State
	st := TableStatus{
		Source: x.Source, Target: x.Target, State: stateWord(s), Proof: "assumed",
		SourceLag: -1, AppliedLag: -1, Retention: -1, DeadLetters: x.Letters,
		Gaps: s.OpenGaps(), Owner: s.Owner, Epoch: s.Epoch, LogFormat: s.Format, Changes: s.Changes, Foreign: s.Foreign,
	}
	st.Accepted = len(s.Gaps) - st.Gaps
	sh := &st.Shards
	sh.Open, sh.Closed, sh.Waiting, sh.Done = s.Counts()
	st.Queue = queueUse(x.Pressure)
	if t := s.Through(); t > 0 {
		st.SourceLag = seconds(x.Now - t)
		st.Retention = max(0, (source.Retention - time.Duration(x.Now-t)*time.Millisecond).Seconds())
	}
	if t := s.AppliedThrough(); t > 0 {
		at := time.UnixMilli(t).UTC()
		st.AppliedLag, st.AppliedThrough = seconds(x.Now-t), &at
	}
	st.ClockAhead = seconds(s.TopClock() - s.Date)
	if s.Halted != nil {
		st.Halt, st.Code = s.Halted.Reason, s.Halted.Code
	}
	st.Reasons = reasons(x, &st)
	return st
}

func seconds(ms int64) float64 { return math.Max(0, float64(ms)/1000) }

func stateWord(s *checkpoint.State) string {
	switch {
	case s.Paused:
		return "paused"
	case s.Halted != nil:
		return "halted"
	case s.OpenGaps() > 0:
		return "gap"
	case s.Live() == nil:
		return "waiting"
	}
	return "running"
}

func queueUse(p queue.Pressure) QueueUse {
	u := QueueUse{Bytes: p.Bytes, Limit: p.Limit, HoursLeft: -1}
	if !p.Oldest.IsZero() {
		oldest := p.Oldest.UTC()
		u.Oldest = &oldest
	}
	if !math.IsInf(p.HoursLeft, 0) {
		u.HoursLeft = math.Round(p.HoursLeft*100) / 100
	}
	return u
}

// lowRetention is what is left when a table is red: time enough for somebody to act.
const lowRetention = 6 * time.Hour

// reasons says why a table is not ready.
//
// Rule 10: ready means progress or idleness of every live shard, and nothing open; never "the process is up".
func reasons(x Seen, st *TableStatus) (why []string) {
	add := func(cond bool, what string) {
		if cond {
			why = append(why, what)
		}
	}
	s := x.State
	age := time.Duration(x.Now-s.Date) * time.Millisecond
	add(s.Owner == "" || s.Released, "no owner: the replicator is not running")
	add(s.Owner != "" && !s.Released && age > 3*x.ClaimTTL, "no sign of life of the owner for "+age.Round(time.Second).String())
	add(s.Live() == nil, "not started: no listing of the stream is in the log")
	add(s.Live() != nil && s.Live().Disabled, "the stream is disabled: what is written now is in no stream")
	add(s.Paused, "paused")
	add(s.Halted != nil, "halted: "+st.Halt)
	add(st.Retention >= 0 && st.Retention < lowRetention.Seconds(),
		fmt.Sprintf("unread changes are lost in %s", time.Duration(st.Retention*float64(time.Second)).Round(time.Minute)))
	add(st.Gaps > 0, plural(st.Gaps, "gap")+": records were lost before they were read")
	add(st.DeadLetters > 0, plural(st.DeadLetters, "dead letter"))
	add(s.Live() != nil && st.AppliedThrough == nil, "not every shard has been read and applied yet")
	return why
}
