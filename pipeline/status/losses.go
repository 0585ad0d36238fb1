package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// addTroubles adds the halts and gaps of the state to a status.
func (st *Table) addTroubles(s *checkpoint.State) {
	st.Gaps = s.OpenGaps()
	st.Accepted = len(s.Gaps) - st.Gaps
	st.OnlyArchiveDiffers = true
	for i := range s.Gaps {
		if len(s.DifferingSinks(&s.Gaps[i])) > 0 {
			st.Differing++
			st.OnlyArchiveDiffers = st.OnlyArchiveDiffers && !s.BigtableDiffers(&s.Gaps[i])
			canceled, doubt := s.Gaps[i].Canceled, s.Gaps[i].Doubt != ""
			st.CopyCanceled, st.CopyUnconfirmed = st.CopyCanceled || canceled, st.CopyUnconfirmed || doubt
			if !canceled && !doubt {
				st.lost++
			}
		}
	}
	st.OnlyArchiveDiffers = st.OnlyArchiveDiffers && st.Differing > 0
	if since := s.DiffersSince(); since > 0 {
		at := since.Time().UTC()
		st.DiffersSince = &at
	}
	halts := s.AllHalts()
	for sink, h := range halts {
		st.addHalt(sink, h.Reason)
	}
	if h := st.worstHalt(halts); h != nil {
		at := h.At.Time().UTC()
		st.Halt, st.Code, st.HaltSink, st.HaltSince = h.Reason, h.Code, h.Sink, &at
		if h.Held && h.Code != outcome.CodeRefusedAll {
			st.HeldEntry = h.Seq
		}
	}
}

// takeSince takes from the log since when the table is in its state, where the log records it.
func (st *Table) takeSince(s *checkpoint.State) {
	since := change.Millis(0)
	switch st.State {
	case "halted":
		if h := st.worstHalt(s.AllHalts()); h != nil {
			since = h.At
		}
	case "paused":
		since, st.PausedBy = s.Pausing.At, s.Pausing.By
	case "gap":
		for i := range s.Gaps {
			if g := &s.Gaps[i]; !g.Accepted || len(s.DifferingSinks(g)) > 0 {
				since = min(cmp.Or(since, g.Found), g.Found)
			}
		}
	case WrittenBehindFence:
		since = s.Fence.BehindSince
	case "copying":
		if c := s.CopyRunning(); c != nil {
			since = c.Began
		}
	}
	if since != 0 {
		at := since.Time().UTC()
		st.Since = &at
	}
}

// addHalt adds a halt. The map may be shared with an earlier status, so it is copied.
func (st *Table) addHalt(sink, reason string) {
	st.Halts = maps.Clone(st.Halts)
	if st.Halts == nil {
		st.Halts = map[string]string{}
	}
	st.Halts[sink] = reason
}

// worstHalt returns the halt that stands for all: one that halts the table before others, that of
// the pipeline itself before the oldest.
func (st *Table) worstHalt(halts map[string]*checkpoint.Halt) *checkpoint.Halt {
	if h := halts[outcome.Pipeline]; h != nil || len(halts) == 0 {
		return h
	}
	beside := func(h *checkpoint.Halt) int {
		if st.haltedBy(h.Sink) {
			return 0
		}
		return 1
	}
	return slices.MinFunc(slices.Collect(maps.Values(halts)), func(a, b *checkpoint.Halt) int {
		return cmp.Or(cmp.Compare(beside(a), beside(b)), cmp.Compare(a.At, b.At), cmp.Compare(a.Sink, b.Sink))
	})
}

// haltedBy reports whether the halt of a sink halts the table: that of the pipeline itself, or of
// Bigtable. While only the archive is halted, Bigtable goes on; a table without a target has
// nothing else.
func (st *Table) haltedBy(sink string) bool {
	return sink == outcome.Pipeline || sink == checkpoint.SinkBigtable || st.Target == ""
}

// halted reports whether the table is halted, and not only a sink beside it.
func (st *Table) halted() bool {
	for sink := range st.Halts {
		if st.haltedBy(sink) {
			return true
		}
	}
	return st.State == "halted"
}

// haltReasons returns what is halted, sink by sink.
func (st *Table) haltReasons() (why []Reason) {
	for _, sink := range slices.Sorted(maps.Keys(st.Halts)) {
		if sink == outcome.Pipeline {
			why = append(why, HaltedBy(st.Halts[sink]))
		} else {
			why = append(why, Reason{WhyHalted, "sink " + sink + " is halted: " + st.Halts[sink]})
		}
	}
	return why
}

// HaltedBy returns the reason of a table in a halted pipeline.
func HaltedBy(why string) Reason { return Reason{WhyHalted, "halted: " + why} }

// gapReasons returns what was lost. An accepted gap still counts: reading went on after it, but the
// sinks differ from the source until the gap is waived.
func (st *Table) gapReasons() (why []Reason) {
	if st.Gaps > 0 {
		why = append(why, Reason{WhyGap, plural(st.Gaps, "gap") + ": records were lost before they were read; nothing is " +
			"read after " + oneOf(st.Gaps, "it", "them") + " until `repair --gaps` or `resume`"})
	}
	if st.CopyCanceled {
		why = append(why, Reason{WhyCopyCanceled,
			checkpoint.ReasonCopyCanceled + ", or `replicator repair --table " + st.Source +
				"` compares the table; see `gaps list`"})
	}
	if st.CopyUnconfirmed {
		why = append(why, Reason{WhyUnconfirmed,
			checkpoint.ReasonUnconfirmed + "; `replicator verify` ends this when it finds everything equal"})
	}
	if st.DiffersSince != nil && st.lost > 0 {
		why = append(why, Reason{WhyDiffers, "differs since " + st.DiffersSince.Format(time.RFC3339) + ": what changed in " +
			plural(st.lost, "gap") + " is missing, and what was deleted there is still in the target; see `gaps list`"})
	}
	return why
}

// endedOpen counts the shards that are not read because they count as read to their end, while a
// listing shows them without one. For a shard that stands before a gap, the gap is reason enough.
func endedOpen(s *checkpoint.State) (n int) {
	for _, id := range s.UnreadOpenShards() {
		if s.Shards[id].Phase.Finished() {
			n++
		}
	}
	return n
}

// unreadReasons returns that open shards are not read.
func (st *Table) unreadReasons() []Reason {
	n := st.Shards.Unread
	if n == 0 {
		return nil
	}
	return []Reason{{WhyOpenUnread, plural(n, "shard") + oneOf(n, " is", " are") +
		" not read, although a listing shows no end"}}
}

// oneOf returns one for the number 1, and many for any other.
func oneOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// resyncReason returns since when a resync of the whole table is pending, and what it is doing if
// that is known.
func (st *Table) resyncReason(p *checkpoint.PendingResync, now time.Time) string {
	what := "the whole table is compared, and differences are repaired"
	if p.Recover {
		what = "a new life has begun after a lost log: " + what
	}
	if strings.HasPrefix(p.ID, ClusterPrefix) {
		what = "the writes go to another cluster of Bigtable, which may lack the last changes: " + what
	}
	if d := now.Sub(p.Asked.Time()); d >= time.Second { // the clock may have been set back since
		what += ", for " + Ago(d)
	}
	r := st.Resync
	if r == nil {
		return what
	}
	doing := " (" + r.Doing
	if r.Doing != "waiting" {
		doing += fmt.Sprintf(": %d of about %s, %s", r.Items, plural(int(max(r.Items, r.Estimate)), "item"), r.Differences())
	}
	if r.Why != "" {
		doing += "; " + r.Why
	}
	return what + doing + ")"
}

// ClusterPrefix begins the name of a resync that a change of the cluster made necessary.
const ClusterPrefix = "cluster-"
