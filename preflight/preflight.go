package preflight

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// DefaultSample is how many items of each table are read, in pages of at most 1 MB: 128 read units
// each.
const DefaultSample = 1000

// timeout is the time limit for all servers together.
const timeout = 2 * time.Minute

// Options are the choices of a preflight check.
type Options struct {
	Offline  bool // only what needs no connection
	Capacity bool // compute Report.Capacity too, which measures the latency of Bigtable
	Sample   int  // items of each table that the mapping is tried on; 0: none
	Logger   clients.Logger

	// Sampling is called before a table is sampled, with the number of items to expect. It returns
	// a function to call with the number of items read so far, and one to call at the end. Nil:
	// progress is not shown.
	Sampling func(table string, items int64) (progress func(items int), done func())
}

// Report is what a preflight check found.
type Report struct {
	Problems    []problem.Problem // of configuration and mappings
	Environment []problem.Problem // of servers, volumes and stored state
	Endpoints   map[string]string // address by server
	Principals  map[string]string // identity of the calls, by server
	Cost        map[string]int64
	Tables      []*TableReport
	Selections  []Selection
	Policies    *Policies // permissions that the configuration needs; nil if that is not known
	Running     *Running  // nil if no table can be described
	Capacity    *Capacity // nil if Options.Capacity is not set, or servers cannot be reached
}

// Run checks a configuration that was loaded with the given problems. Servers are asked only if
// configuration and mappings have no error so far.
func Run(ctx context.Context, cfg *config.Config, problems []problem.Problem, o Options) *Report {
	r := &Report{
		Problems: append(problems, catalog.Mappings(cfg)...), Endpoints: map[string]string{}, Principals: map[string]string{},
		Cost: map[string]int64{}, Tables: []*TableReport{},
	}
	if problem.AnyError(r.Problems) {
		return r
	}
	cfg = r.find(ctx, cfg, o)
	tables, _ := catalog.Parse(cfg)
	c := &check{Report: r, cfg: cfg, catalog: tables, clients: clients.ForCommand(cfg, o.Logger)}
	c.memory()
	c.add(NotDurable(cfg)...)
	if o.Offline {
		c.offline()
		c.policies()
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer c.clients.Close()
	c.online(ctx, o)
	cfg.Locate(r.Environment)
	return r
}

// check is the state of one preflight check.
type check struct {
	*Report
	cfg     *config.Config
	catalog *catalog.Catalog
	clients *clients.Clients

	src        *source.Source
	sink       *bigtable.Client // nil: Bigtable cannot be reached
	bucket     bool             // the archive's bucket can be read
	queue      *queue.Queue     // nil: there is none yet, or it cannot be reached
	queueFails bool             // the queue cannot be reached or written
	writesTo   string           // cluster that the app profile routes to; "": not known
}

// offline compiles what can be compiled without DynamoDB: the mappings of tables with a declared
// key.
func (c *check) offline() {
	for _, t := range c.catalog.Tables {
		if t.TakeDeclaredKey(); !t.Described && t.Mapping != nil {
			c.Problems = append(c.Problems, problem.Problem{
				Severity: problem.SeverityWarning, Code: "keys", Path: t.Path + ".keys", Hint: "keys: [pk:S, sk:S]",
				What: "the mapping of " + t.Source + " was read, but not compiled: its key is not known offline",
			})
		}
	}
	c.compile()
	c.inFlight()
}

// online calls the servers. An error of one server does not stop the checks of the others, except
// that without a client of DynamoDB nothing else is checked.
func (c *check) online(ctx context.Context, o Options) {
	c.endpoints()
	c.adminPort(ctx)
	var err error
	if c.src, err = c.clients.Source(ctx); err != nil {
		c.failed("dynamodb", "source", err)
		return
	}
	for _, t := range c.catalog.Tables {
		c.describe(ctx, t)
		c.readable(ctx, t)
		if !t.ArchivedOnly() {
			c.items(ctx, t)
		}
		c.heartbeats(ctx, t)
	}
	c.bulkLoads(ctx)
	c.policies()
	c.principal(ctx, "dynamodb", c.src.Principal)
	c.compile()
	c.inFlight()
	for _, r := range c.Tables {
		c.recovery(ctx, r)
		if !r.table.ArchivedOnly() {
			c.sample(ctx, r, o)
		}
	}
	c.bigtable(ctx)
	c.archive(ctx)
	c.logs(ctx)
	c.stored(ctx)
	c.cost()
	c.running(ctx)
	if o.Capacity {
		c.capacity(ctx)
	}
}

// policies notes which permissions the configuration needs, with the ARNs of the tables that are
// described.
func (c *check) policies() {
	arns := map[string]string{}
	for _, t := range c.catalog.Tables {
		arns[t.Source] = t.Info.ARN
	}
	c.Policies = policies(c.cfg, arns)
}

// compile compiles the mappings, and reports the rules of each table that compiled.
func (c *check) compile() {
	c.Problems = append(c.Problems, c.catalog.Compile()...)
	c.Problems = append(c.Problems, c.catalog.Settings()...)
	for _, t := range c.catalog.Tables {
		if t.Program != nil {
			r := newTableReport(t)
			if t.Info.Items > 0 && !t.ArchivedOnly() {
				r.Copy = EstimateCopy(&t.Info, t.Backfill)
			}
			c.Tables = append(c.Tables, r)
		}
	}
}
