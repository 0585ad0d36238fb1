package comparison

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/distributed"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Place is where a plan is, and how a process reaches what the plan names. Engines log it, and show
// it on their pages: it contains no mapping and no secret.
type Place struct {
	Folder string // URL of the comparison's folder
	// Exports is where copies of the exports are, in place of their bucket, with the same keys
	// below it; "": in their bucket.
	Exports   string
	AWSRegion string // of s3:// URLs that name none; "": the environment's
	Scratch   string // folder for what is sorted; "": the system's

	Endpoint   string // of Bigtable, for tests; "": the service
	S3Endpoint string // of S3, for tests; "": the service
}

// Comparison is what the files and ranges of a process share.
type Comparison struct {
	place  Place
	folder *distributed.Folder
	plan   *distributed.Plan
	stored map[int]bool // ranges that had findings when it was opened
	tables []verify.Table
	client *bigtable.Client
	target *verify.BigtableTarget

	mu      sync.Mutex // covers what follows
	exports map[int]*export.Export
}

var shared struct {
	sync.Mutex
	all map[Place]*Comparison
}

// Shared returns the comparison of this process for a plan, and opens it at the first call. It
// lives as long as the process.
func Shared(p Place) (*Comparison, error) {
	shared.Lock()
	defer shared.Unlock()
	if c := shared.all[p]; c != nil {
		return c, nil
	}
	c, err := Open(context.Background(), p) // not the context of a bundle, which it outlives
	if err != nil {
		return nil, err
	}
	if shared.all == nil {
		shared.all = map[Place]*Comparison{}
	}
	shared.all[p] = c
	return c, nil
}

// Open reads the plan, compiles its mappings and opens a client of Bigtable.
func Open(ctx context.Context, p Place) (*Comparison, error) {
	c := &Comparison{place: p, exports: map[int]*export.Export{}}
	var err error
	if c.folder, c.plan, err = p.Plan(ctx); err != nil {
		return nil, err
	}
	if c.stored, err = c.folder.Stored(ctx, c.plan); err != nil {
		return nil, err
	}
	mappings := make([]delegation.Mapping, len(c.plan.Tables))
	for i := range c.plan.Tables {
		mappings[i] = c.plan.Tables[i].Mapping
	}
	programs, err := worker.CompileAll(c.plan.Pipeline, c.plan.Target, mappings)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		c.tables = append(c.tables, verify.Table{Program: program, Parts: 1, Outlives: program.Outlives})
	}
	c.client, err = bigtable.Open(ctx, bigtable.Options{
		Project: c.plan.Project, Instance: c.plan.Instance, AppProfile: c.plan.Profile, Endpoint: p.Endpoint,
		Pipeline: c.plan.Pipeline,
	}, zap.NewNop(), nil)
	if err != nil {
		return nil, err
	}
	c.target = guarded.NewTarget(c.client, c.plan.Target, programs...)
	return c, nil
}

// Plan opens the folder and reads the plan.
func (p *Place) Plan(ctx context.Context) (*distributed.Folder, *distributed.Plan, error) {
	folder, err := distributed.Open(ctx, p.Folder, p.AWSRegion)
	if err != nil {
		return nil, nil, err
	}
	plan, err := folder.Plan(ctx)
	if err != nil {
		_ = folder.Close() // nothing was written
		return nil, nil, fmt.Errorf("plan in %s: %w", p.Folder, err)
	}
	return folder, plan, nil
}

// export opens the export of a table, once for all files.
func (c *Comparison) export(ctx context.Context, table int) (*export.Export, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.exports[table]; e != nil {
		return e, nil
	}
	t := &c.plan.Tables[table]
	at, err := c.place.exportAt(t.Export.URL)
	if err != nil {
		return nil, err
	}
	e, err := worker.OpenExport(context.WithoutCancel(ctx), at, worker.Wanted{
		Export: t.Export, TableID: t.TableID, Heartbeats: t.Heartbeats, Schema: t.Schema,
		Region: c.place.AWSRegion, S3Endpoint: c.place.S3Endpoint, Scratch: c.place.Scratch,
	})
	if err == nil {
		c.exports[table] = e
	}
	return e, err
}

// exportAt returns where this process reads an export.
func (p *Place) exportAt(original string) (string, error) {
	if p.Exports == "" {
		return original, nil
	}
	u, err := url.Parse(original)
	if err != nil {
		return "", fmt.Errorf("read the URL of an export: %w", err)
	}
	return strings.TrimSuffix(p.Exports, "/") + "/" + strings.TrimPrefix(u.Path, "/"), nil
}

// Close closes the connections.
func (c *Comparison) Close() error {
	_ = c.folder.Close() // what was written is durable
	return c.client.Close()
}

// Describe opens every export and says what a job would do.
func (c *Comparison) Describe(ctx context.Context, say func(format string, args ...any)) error {
	say("comparison %s of table %s, instance %s of project %s", c.plan.ID, c.plan.Target, c.plan.Instance, c.plan.Project)
	for i := range c.plan.Tables {
		e, err := c.export(ctx, i)
		if err != nil {
			return err
		}
		say("export     %s of %s, as of %s: %d files, %d items", e.URL, e.Table, e.Time.Time().UTC().Format(time.RFC3339),
			len(e.Files), e.Items)
	}
	say("ranges     %d, %d of them compared already", c.plan.Ranges(), len(c.stored))
	say("nothing was started and nothing was written")
	return nil
}
