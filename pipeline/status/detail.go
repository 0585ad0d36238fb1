package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Detail is what the page of one table shows beside its status. It holds no item and no key.
type Detail struct {
	LookedAt time.Time
	Shards   []Shard // by the time at which they were seen first
	More     int     // shards that are left out
	Gaps     []Gap   // newest first
}

// Shard is one shard in the lineage of a stream.
type Shard struct {
	ID, Parent string
	Phase      string // open, closed, waiting, done or lost
	Position   string // where reading goes on
	Lag        time.Duration
	LagKnown   bool
}

// Gap is a range of the source that was lost before it was read.
type Gap struct {
	ID, Shard, Reason   string
	Since, Until, Found time.Time // zero: not known
	State               string    // a checkpoint.GapState
}

// maxShards bounds the shards of a Detail.
const maxShards = 4000

// DetailOf returns the details of a state at a time of the service. It takes time in proportion to
// the shards.
func DetailOf(s *checkpoint.State, now change.Millis) *Detail {
	d := &Detail{LookedAt: time.Now()}
	all := make([]*checkpoint.Shard, 0, len(s.Shards))
	for _, sh := range s.Shards {
		all = append(all, sh)
	}
	slices.SortFunc(all, func(a, b *checkpoint.Shard) int {
		return cmp.Or(cmp.Compare(a.FirstSeen, b.FirstSeen), cmp.Compare(a.ID, b.ID))
	})
	if d.More = max(0, len(all)-maxShards); d.More > 0 {
		all = all[d.More:] // the oldest are read already
	}
	for _, sh := range all {
		d.Shards = append(d.Shards, shardOf(sh, now))
	}
	for i := range s.Gaps {
		d.Gaps = append(d.Gaps, gapOf(s, &s.Gaps[i]))
	}
	slices.SortFunc(d.Gaps, func(a, b Gap) int { return b.Found.Compare(a.Found) })
	return d
}

func shardOf(sh *checkpoint.Shard, now change.Millis) Shard {
	x := Shard{ID: sh.ID, Parent: sh.Parent, Phase: sh.Phase.String()}
	switch {
	case sh.Loss.Pending:
		x.Phase = "lost"
	case sh.Phase.Finished():
		x.Phase = "done"
	case sh.Phase == checkpoint.PhaseClosed:
		x.Phase = "closed"
	}
	switch {
	case sh.Pos.After != "":
		x.Position = "after record " + string(sh.Pos.After)
	case sh.Pos.At != 0:
		x.Position = "from " + sh.Pos.At.Time().UTC().Format(time.DateTime) + "Z"
	default:
		x.Position = "from its oldest record"
	}
	if sh.Watermark > 0 && !sh.Phase.Finished() {
		x.Lag, x.LagKnown = age(now, sh.Watermark), true
	}
	return x
}

func gapOf(s *checkpoint.State, g *checkpoint.Gap) Gap {
	x := Gap{
		ID: g.ID(), Shard: g.Feed.Shard, Reason: g.Reason, Since: moment(s.GapStart(g)), Until: moment(g.Until),
		Found: moment(g.Found), State: string(s.GapState(g)),
	}
	return x
}

// moment converts a time of the service; the zero time for an unknown one.
func moment(ms change.Millis) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return ms.Time().UTC()
}
