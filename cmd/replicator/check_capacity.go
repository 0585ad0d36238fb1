package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/heap"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// diskProblems compares the volume of the embedded queue with what the logs may take.
func diskProblems(d embedded.Disk, dir string) []config.Problem {
	say := func(severity, code, path, hint, what string, args ...any) []config.Problem {
		return []config.Problem{{Severity: severity, Code: code, Path: path, What: fmt.Sprintf(what, args...), Hint: hint}}
	}
	switch {
	case d.Low:
		return say("error", "disk_low", "queue.dir", "make room there, enlarge the volume, or choose another one",
			"the volume of %s has %s left for the logs; reading pauses below %s", dir, humanize.IBytes(d.Left), humanize.IBytes(d.PauseBelow))
	case d.Short():
		return say("warning", "disk_short", "queue.max_bytes", "a larger volume, or a smaller queue.max_bytes: reading pauses at whichever is reached first",
			"the logs may still take %s, the volume of %s has %s left for them", humanize.IBytes(d.Untaken), dir, humanize.IBytes(d.Left))
	}
	return nil
}

// capacity compares what the logs hold and may take with their limit and their volume.
func (u *checkup) capacity(ctx context.Context, q *queue.Queue) {
	for _, t := range u.cfg.Tables {
		size, err := snapshotBytes(ctx, q, t.Source)
		if err != nil {
			u.environment("queue", "queue", err)
			return
		}
		if problem, bad := limitProblem(t.Source, size, int64(u.cfg.Queue.MaxBytes)); bad {
			u.around = append(u.around, problem)
		}
	}
	if d, ok := q.Disk(); ok {
		u.around = append(u.around, diskProblems(d, u.cfg.Queue.Dir)...)
	}
}

func snapshotBytes(ctx context.Context, q *queue.Queue, table string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	l, err := q.Log(ctx, table)
	if errors.Is(err, queue.ErrNoLog) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := l.Info(ctx); err != nil { // what the disk is compared with
		return 0, err
	}
	return l.SnapshotBytes(ctx)
}

// limitProblem refuses a limit that leaves no room for the state of a table: what a full log keeps free must hold two
// snapshots, or it cannot be trimmed.
func limitProblem(table string, snapshot int, limit int64) (config.Problem, bool) {
	least := queue.MinMaxBytes(snapshot)
	return config.Problem{
		Severity: "error", Code: "log_too_small", Path: "queue.max_bytes",
		What: fmt.Sprintf("the state of %s takes %s: a log of %s has no room for two of it in the tenth that a full log keeps free",
			table, humanize.IBytes(uint64(snapshot)), humanize.IBytes(uint64(limit))),
		Hint: fmt.Sprintf("queue.max_bytes: %dMiB or more", (least+1<<20-1)>>20),
	}, limit < least
}

// memory notes what the configuration needs, and whether that is there.
func (u *checkup) memory() {
	n := heap.NeedOf(u.cfg)
	u.cost["memory_bytes"], u.cost["memory_bytes_large_items"] = heap.ProcessBytes(n.Usual), heap.ProcessBytes(n.Most)
	if short := n.Shortage(); short != "" {
		u.around = append(u.around, config.Problem{Severity: "warning", Code: "memory", Path: "memory.total", What: short,
			Hint: "give it more, lower memory.total, or carry fewer tables in one process: else collecting garbage takes the CPU"})
	}
}
