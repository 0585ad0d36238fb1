package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// Member is a replicator of the pipeline that announces itself.
type Member struct {
	Owner string `json:"owner"` // as in its claims
	Build string `json:"build"` // version
	Reads int    `json:"reads"` // the highest format that it reads
}

// Claim is the newest claim of a log.
type Claim struct {
	Table string `json:"table"`
	Owner string `json:"owner"` // empty: the log is released, and whoever claims it next is to be a Member
	Reads int    `json:"reads"` // the highest format that its build reads
}

// Disagreement names the replicators that could not read a format.
type Disagreement struct{ Older []string }

func (d *Disagreement) Error() string { return strings.Join(d.Older, "\n") }

// Agreed returns nil if every member, and the owner of each log, reads the format want; otherwise a
// *Disagreement. Without members only claims count.
func Agreed(members []Member, claims []Claim, want int) error {
	d := &Disagreement{}
	heard := map[string]Member{}
	for _, m := range members {
		heard[m.Owner] = m
		if m.Reads < want {
			d.Older = append(d.Older, fmt.Sprintf("replicator %s, version %s, reads up to format %d", m.Owner,
				cmp.Or(m.Build, "unknown"), m.Reads))
		}
	}
	for _, c := range claims {
		m, known := heard[c.Owner]
		switch reads := max(c.Reads, m.Reads); {
		case c.Owner == "" || reads >= want:
		case known: // named above
		default:
			d.Older = append(d.Older, fmt.Sprintf("the owner of the log of %s, %s, reads up to format %d", c.Table, c.Owner,
				reads))
		}
	}
	if len(d.Older) == 0 {
		return nil
	}
	return d
}

const (
	// Patience is how long everyone must agree before a format is raised without a command. It is
	// as long as a stream of DynamoDB keeps changes, so there is a day in which the older version
	// can be started again.
	Patience = 24 * time.Hour
	// longestBreak is the time between two observations after which nothing is known of the time
	// between them.
	longestBreak = 5 * time.Minute
)

// Rollout decides when a format is raised without a command. It is a function of what it is told.
// Not safe for concurrent use.
type Rollout struct {
	want        int
	since, last time.Time
}

// NewRollout returns the decision about the format want.
func NewRollout(want int) *Rollout { return &Rollout{want: want} }

// Observe notes the members and the owners of the logs now, and reports whether all of them have
// read the format for Patience without a break. It is a break when there is no member, not even
// this process, or when there was no observation for long, for instance on a machine that slept.
func (r *Rollout) Observe(now time.Time, members []Member, claims []Claim) (finalize bool) {
	if r.since.IsZero() || now.Sub(r.last) > longestBreak || now.Before(r.last) {
		r.since = now
	}
	r.last = now
	if len(members) == 0 || Agreed(members, claims, r.want) != nil {
		r.since = time.Time{}
		return false
	}
	return now.Sub(r.since) >= Patience
}

// Since returns since when every member agrees; the zero time while one does not.
func (r *Rollout) Since() time.Time { return r.since }

// Claims returns the newest claim of each log of the pipeline: one small message a log.
func Claims(ctx context.Context, q *queue.Queue) ([]Claim, error) {
	tables, err := q.Tables(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Claim, 0, len(tables))
	for _, table := range tables {
		l, err := q.Log(ctx, table)
		if errors.Is(err, queue.ErrNoLog) {
			continue // its table was retired meanwhile
		}
		if err != nil {
			return nil, err
		}
		c := Claim{Table: table}
		e := l.NewestClaim(ctx)
		if e == nil {
			return nil, fmt.Errorf("read newest claim of the log of %s", table)
		}
		if b, ok := e.Body.(*checkpoint.Claim); ok {
			c.Owner, c.Reads = b.Owner, b.Reads
		}
		all = append(all, c)
	}
	return all, nil
}

// owns reports whether a process owns a log.
func owns(claims []Claim, owner string) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool { return c.Owner == owner })
}

// LowestFormat returns the lowest format that a log of the pipeline has; 0 without logs. It folds
// all of them.
func LowestFormat(ctx context.Context, q *queue.Queue) (int, error) {
	tables, err := q.Tables(ctx)
	if err != nil {
		return 0, err
	}
	lowest := 0
	for _, table := range tables {
		l, err := q.Log(ctx, table)
		if errors.Is(err, queue.ErrNoLog) {
			continue
		}
		if err != nil {
			return 0, err
		}
		s, err := l.Fold(ctx)
		if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) {
			continue // what refuses this build is not the lowest
		}
		if err != nil {
			return 0, err
		}
		if s.Format > 0 && (lowest == 0 || s.Format < lowest) {
			lowest = s.Format
		}
	}
	return lowest, nil
}
