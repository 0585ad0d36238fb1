package limit

import "fmt"

// MostCalls is the highest bigtable.max_in_flight.
const MostCalls = 4096

// By is what limits a table, as JSON and metrics name it.
type By string

const (
	Latency  By = "latency"  // Bigtable's
	Refusals By = "bigtable" // it refuses calls, or does not answer in time
	Memory   By = "memory"
	CPU      By = "cpu"
	Source   By = "source"
	Log      By = "log"
	Nothing  By = "nothing" // the table keeps up
)

// All returns every By.
func All() []By { return []By{Latency, Refusals, Memory, CPU, Source, Log, Nothing} }

// Word returns what limits a table, for people; "" for an unknown By.
func (b By) Word() string {
	return map[By]string{
		Latency: "Bigtable's latency", Refusals: "Bigtable refuses", Memory: "memory", CPU: "CPU", Source: "source",
		Log: "log", Nothing: "nothing",
	}[b]
}

// Remedy returns what helps, in a few words; "" where nothing limits. docs/operations.md says more.
func (b By) Remedy(c *Calls) string {
	switch b {
	case Latency:
		return latencyRemedy(c)
	case Refusals:
		return "more Bigtable nodes, or another row key where one tablet is hot"
	case Memory:
		return "a higher memory.total"
	case CPU:
		return "more processors, or another replica"
	case Source:
		return "no other reader of the stream; else DynamoDB gives no more per shard"
	case Log:
		return "a faster disk or NATS; a log that is full: a larger queue.max_bytes"
	}
	return ""
}

// latencyRemedy distinguishes why no more calls are in flight.
func latencyRemedy(c *Calls) string {
	switch {
	case c == nil:
	case c.InFlight*2 < c.Bound:
		return "nothing to buy: the changes of few items wait for each other; spread the writes over more items"
	case c.Bound < c.Most:
		return "more Bigtable nodes: it becomes slower with more calls"
	case c.Most >= MostCalls:
		return "a replicator nearer to the cluster: a table reaches no more calls"
	default:
		return fmt.Sprintf("a replicator nearer to the cluster, or a bigtable.max_in_flight above %d", c.Most)
	}
	return "a replicator nearer to the cluster, or more Bigtable nodes"
}
