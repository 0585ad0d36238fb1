package preflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// CostMemory and CostMemoryLarge are the keys of Report.Cost that hold the memory of run: with
// items of a few KB, and with items of hundreds of KB in every table. CostMemoryCopy is what a copy
// may take beside either.
const (
	CostMemory      = "memory_bytes"
	CostMemoryLarge = "memory_bytes_large_items"
	CostMemoryCopy  = "memory_bytes_copy"
)

// memory reports how much memory run needs, and a limit of this process that is lower.
func (c *check) memory() {
	need := c.cfg.HeapNeed()
	c.Cost[CostMemory], c.Cost[CostMemoryLarge] = config.ProcessBytes(need.Usual), config.ProcessBytes(need.Most)
	c.Cost[CostMemoryCopy] = need.Copy
	if shortage := need.Shortage(); shortage != "" {
		c.add(warnf("memory", "memory.total",
			"give it more, lower memory.total, or replicate fewer tables per process: else garbage collection uses up the CPU",
			"%s", shortage))
	}
}

// CostCalls is the key of Report.Cost that holds how many calls to Bigtable a table can have in
// flight, if no other table is busy.
const CostCalls = "calls_in_flight"

// callBounds returns what bounds the calls of a table in flight: the configuration, the memory, and
// its lanes.
func (c *check) callBounds() (wanted, byMemory, lanes int) {
	return c.cfg.Bigtable.MaxInFlight, apply.MostInFlight(apply.CallsIn(clients.CallMemory(c.cfg))),
		pipeline.Lanes(len(c.cfg.Tables))
}

// inFlight reports how many calls to Bigtable a table can have in flight, and a max_in_flight of
// the file that memory.total or the lanes do not allow. The default promises nothing, so it is
// none.
func (c *check) inFlight() {
	wanted, byMemory, lanes := c.callBounds()
	c.Cost[CostCalls] = int64(min(wanted, byMemory, lanes))
	if wanted > byMemory {
		c.add(warnf("in_flight", "bigtable.max_in_flight",
			"a higher memory.total, of which calls take half, 16 KiB each and a quarter more in preparation; "+
				"or a lower max_in_flight",
			"with memory.total %s all tables together reach %d calls in flight, not %d",
			humanize.IBytes(uint64(c.cfg.Memory.Total)), byMemory, wanted))
	}
	def := config.Default()
	if wanted == def.Bigtable.MaxInFlight {
		return
	}
	if wanted > lanes {
		c.add(warnf("in_flight", "bigtable.max_in_flight", "a lower max_in_flight, or fewer tables per process",
			"each of %d tables has %d lanes with a call each, and reaches no more than %d in flight, not %d",
			len(c.cfg.Tables), lanes, lanes, wanted))
	}
	for _, t := range c.catalog.Tables {
		if t.Program != nil && t.Program.Wipes() != nil && wanted > apply.LanesWithTurns {
			c.add(warnf("in_flight", "bigtable.max_in_flight",
				"nothing, if that is fast enough: changes wait for each other where rows are removed as a whole",
				"%s has a rule with on_remove: row, so it reaches %d calls in flight, not %d",
				t.Source, apply.LanesWithTurns, wanted))
		}
	}
}

// cost reports the calls of an idle shard (one GetRecords per source.idle_poll), and how large the
// tables are.
func (c *check) cost() {
	c.Cost["idle_reads_per_shard_and_hour"] = int64(time.Hour / time.Duration(c.cfg.Source.IdlePoll))
	var items, bytes int64
	for _, t := range c.catalog.Tables {
		items, bytes = items+t.Info.Items, bytes+t.Info.Bytes
	}
	c.Cost["items"], c.Cost["bytes"] = items, bytes
}

// room compares what the logs hold and may take with their limit and their volume.
func (c *check) room(ctx context.Context) {
	for _, t := range c.cfg.Tables {
		size, err := snapshotBytes(ctx, c.queue, t.Source)
		if err != nil {
			c.failed("queue", "queue", err)
			return
		}
		c.add(limitProblems(t.Source, size, int64(c.cfg.Queue.MaxBytes))...)
	}
	if d, ok := c.queue.Disk(); ok {
		need, err := c.queue.Needs(ctx, c.sources())
		if err != nil {
			c.failed("queue", "queue", queue.Explain(c.cfg.Queue.Dir, err))
			return
		}
		c.add(diskProblems(d, need, c.cfg.Queue.Dir)...)
	}
}

// snapshotBytes returns the size of a table's state in its log, 0 without a log.
func snapshotBytes(ctx context.Context, q *queue.Queue, table string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	l, err := q.Log(ctx, table)
	if errors.Is(err, queue.ErrNoLog) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := l.Info(ctx); err != nil { // Disk counts the bytes of the logs that Info has asked about
		return 0, err
	}
	return l.SnapshotBytes(ctx)
}

// limitProblems refuses a limit that leaves no room for the state of a table: what a full log keeps
// free must hold two snapshots, or the log cannot be trimmed.
func limitProblems(table string, snapshot int, limit int64) []problem.Problem {
	least := queue.MinMaxBytes(snapshot)
	if limit >= least {
		return nil
	}
	return []problem.Problem{errorf("log_too_small", "queue.max_bytes",
		fmt.Sprintf("queue.max_bytes: %dMiB or more", (least+1<<20-1)>>20),
		"the state of %s takes %s: a full log of %s keeps a tenth free, which is no room for two snapshots of it",
		table, humanize.IBytes(uint64(snapshot)), humanize.IBytes(uint64(limit)))}
}

// sources returns the source tables.
func (c *check) sources() (names []string) {
	for _, t := range c.cfg.Tables {
		names = append(names, t.Source)
	}
	return names
}

// diskProblems compares the volume of the embedded queue with the bytes that the logs, and the
// streams beside them, may take.
func diskProblems(d embedded.Disk, need queue.Needs, dir string) []problem.Problem {
	switch {
	case d.Low:
		return []problem.Problem{errorf("disk_low", "queue.dir", "make room there, enlarge the volume, or choose another one",
			"the volume of %s has %s left for the logs; reading pauses below %s",
			dir, humanize.IBytes(d.Left), humanize.IBytes(d.PauseBelow))}
	case d.Left < uint64(need.Grow):
		return []problem.Problem{warnf("disk_short", "queue.max_bytes",
			"a larger volume, or a smaller queue.max_bytes or archive.max_bytes: reading pauses at whichever is reached first",
			"logs, dead letters, requests and events for the archive may still take %s, the volume of %s has %s left for them",
			humanize.IBytes(uint64(need.Grow)), dir, humanize.IBytes(d.Left))}
	}
	return nil
}

// natsServer compares what the logs need with what the NATS servers and the account offer. The
// embedded server has no account.
func (c *check) natsServer(ctx context.Context) {
	s, external, err := c.queue.ServerInfo(ctx)
	if err != nil {
		c.failed("queue", "queue", queue.Explain(c.cfg.Queue.Dir, err))
	}
	if !external || err != nil {
		return
	}
	c.add(serverProblems(s, c.queue.Replicas())...)
	need, err := c.queue.Needs(ctx, c.sources())
	if err != nil {
		c.failed("queue", "queue", queue.Explain(c.cfg.Queue.Dir, err))
		return
	}
	c.add(storageProblems(s, need.Reserve, c.queue.Replicas())...)
}

// serverProblems checks the number of servers and the maximum size of messages.
func serverProblems(s queue.ServerInfo, copies int) (problems []problem.Problem) {
	switch {
	case copies > 1 && s.Cluster == "":
		problems = append(problems, errorf("replicas", "queue.replicas", "leave it out, or connect to a cluster",
			"%d copies of each log need a cluster, the NATS server is a single one", copies))
	case copies > s.Servers:
		problems = append(problems, warnf("replicas", "queue.replicas",
			"are all servers of the cluster up, and do they advertise themselves?",
			"%d copies of each log need as many servers, cluster %s shows %d", copies, s.Cluster, s.Servers))
	}
	if s.MaxPayload < queue.MaxPayload {
		problems = append(problems, errorf("max_payload", "queue.url",
			"max_payload: 8MB in the configuration of every NATS server",
			"the NATS server takes messages up to %s: a change with two large images halts its table",
			humanize.IBytes(uint64(s.MaxPayload))))
	}
	return problems
}

// storageProblems checks that an account with a limit has room for the bytes that the logs still
// have to reserve. The limit of the servers is not visible to clients, so where there is no other
// the user has to compare.
func storageProblems(s queue.ServerInfo, need int64, copies int) []problem.Problem {
	left := s.Store - s.Reserved
	switch {
	case s.Store < 0 && need > 0:
		return []problem.Problem{warnf("storage_unverified", "queue.max_bytes",
			"compare it with `jetstream { max_file_store }` of the servers, less what other streams have reserved; "+
				"a table whose streams do not fit is halted",
			"the streams of all tables need to reserve %s more in each of %d copies (queue.max_bytes, archive.max_bytes, "+
				"and 1 GiB for dead letters, for each table), and a client cannot see how much the servers have",
			humanize.IBytes(uint64(need)), copies)}
	case s.Store < 0, need*s.Copies <= left:
		return nil
	}
	return []problem.Problem{errorf("storage", "queue.max_bytes",
		"a smaller queue.max_bytes, or a larger limit of the account (max_file)",
		"the logs need to reserve %s more, the account has %s of %s left",
		humanize.IBytes(uint64(need*s.Copies)), humanize.IBytes(uint64(max(left, 0))), humanize.IBytes(uint64(s.Store)))}
}
