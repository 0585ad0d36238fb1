package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// Codes of what keeps copies and resyncs from reading a table.
const (
	codeItems      = "items"
	codeExport     = "export"
	codeWorkers    = "unfit_for_workers"
	codeNoRecovery = "no_recovery"
)

// exportAge is how old an existing export may be at a first start: the stream must still hold what
// changed since.
const exportAge = 23 * time.Hour

// items reads an item that cannot exist: resyncs, heals and `dlq retry` read single items, which
// may be forbidden where scans are allowed.
func (c *check) items(ctx context.Context, t *catalog.Table) {
	if !t.Described {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	_, err := c.src.ReadItems(ctx, t.Source, [][]byte{noItem(&t.Info.Schema)})
	if source.Classify(err) == failure.Denied {
		c.add(errorf(codeItems, t.Path+".source", "grant dynamodb:BatchGetItem: the policy is printed above",
			"single items of %s may not be read, which repair, recover and dlq retry need: %v", t.Source, err))
	}
}

// heartbeats checks the permission to write heartbeats, which copies and reading do not need.
func (c *check) heartbeats(ctx context.Context, t *catalog.Table) {
	key, ok := clients.HeartbeatKeys(t.Heartbeat).Nth(0)
	if !t.Described || !t.Heartbeat.Write || !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	if err := c.src.MayWriteHeartbeats(ctx, &t.Info, key); source.Classify(err) == failure.Denied {
		c.add(warnf("heartbeat", t.Path+".heartbeat", "grant dynamodb:PutItem under the prefix: the policy is printed above",
			"heartbeats may not be written to %s: that its idle shards are idle stays assumed: %v", t.Source, err))
	}
}

// noItem returns a key that no item has, as typed JSON.
func noItem(schema *change.KeySchema) []byte {
	// The number is the smallest that DynamoDB stores.
	values := map[string]string{"S": "tailrace check: no item has this key", "B": "dGFpbHJhY2UgY2hlY2s6IG5vIGl0ZW0=",
		"N": "-9.9999999999999999999999999999999999999E+125"}
	key := map[string]map[string]string{}
	set := func(a change.KeyAttr) {
		kind := string(rune(a.Type))
		key[a.Name] = map[string]string{kind: values[kind]}
	}
	if set(schema.Partition); schema.Sort != nil {
		set(*schema.Sort)
	}
	text, _ := json.Marshal(key) // maps of strings can always be encoded
	return text
}

// firstStart checks what only the first start of a table needs.
func (c *check) firstStart(ctx context.Context, t *catalog.Table) {
	c.Problems = append(c.Problems, firstStart(t, c.cfg)...)
	ctx, cancel := context.WithTimeout(ctx, 2*clients.AskTimeout)
	defer cancel()
	switch b := &t.Backfill; {
	case b.URL != "":
		c.existingExport(ctx, t)
		c.copiedByWorkers(t)
	case b.Bucket != "":
		c.exportable(ctx, t)
		c.copiedByWorkers(t)
	}
}

// copiedByWorkers refuses a mapping with which workers cannot copy the table. Whether an earlier
// life wrote its rows shows the first start.
func (c *check) copiedByWorkers(t *catalog.Table) {
	if !t.Backfill.ByWorkers() || t.Program == nil {
		return
	}
	var sharing []*transform.Program
	for _, other := range c.catalog.Tables {
		if other.Source != t.Source && other.Target == t.Target && other.Program != nil {
			sharing = append(sharing, other.Program)
		}
	}
	if why := pipeline.UnfitForWorkers(t.Program, sharing, true); why != "" {
		c.add(errorf(codeWorkers, t.Path+".backfill.by", "remove it, and the replicator copies the export itself",
			"workers cannot copy %s: %s", t.Source, why.Why()))
	}
}

// existingExport opens the export that the first start is to copy.
func (c *check) existingExport(ctx context.Context, t *catalog.Table) {
	path := t.Path + ".backfill.url"
	e, err := export.Open(ctx, t.Backfill.URL, export.Want{TableID: t.Info.ID, Source: c.src})
	switch {
	case err != nil:
		c.failed(codeExport, path, source.Explain(err))
	case e.Kind != export.Full:
		c.add(errorf(codeExport, path, "export the table with --export-type FULL_EXPORT",
			"%s is an incremental export: it does not hold the items that have not changed", t.Backfill.URL))
	case c.clients.Now().Sub(e.Time.Time()) > exportAge:
		c.add(errorf(codeExport, path, "take a new export, or write backfill: scan",
			"the export shows %s as of %s: what changed since is not all in the stream any more, which goes back 24 hours",
			t.Source, e.Time.Time().UTC().Format(time.RFC3339)))
	case e.Wholeness != export.Whole:
		c.add(warnf("export_unconfirmed", path, "allow dynamodb:DescribeExport on the table's exports, or take one of the "+
			"last 90 days; else the table is not ready before `replicator verify` finds everything equal",
			"DynamoDB cannot be asked whether %s was made with a filter: %s", t.Backfill.URL, e.Unasked))
	}
}

// exportable checks that an export can be asked for and read. Whether it may be written shows the
// first one only.
func (c *check) exportable(ctx context.Context, t *catalog.Table) {
	path := t.Path + ".backfill.bucket"
	p, err := c.src.PointInTime(ctx, t.Source)
	switch {
	case err != nil:
		c.failed(codeExport, path, source.Explain(err))
	case !p.Enabled:
		c.add(errorf(codeNoRecovery, path, "aws dynamodb update-continuous-backups --table-name "+t.Source+
			" --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true",
			"point-in-time recovery of %s is off, and without it DynamoDB exports nothing", t.Source))
	}
	place := fmt.Sprintf("s3://%s/%s", t.Backfill.Bucket, strings.Trim(t.Backfill.Prefix, "/"))
	if err := export.MayList(ctx, place, c.src); err != nil {
		c.failed(codeExport, path, source.Explain(err))
	}
}
