package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Place is where an order is, and how a process reaches what the order names. Engines log it, and
// show it on their pages: it contains no mapping and no secret.
type Place struct {
	Project, Instance, Profile string // of Bigtable; Profile must be the one that the order names
	Pipeline, Table            string
	Order                      string // id: a job never goes on under a later order

	Export    string // where a copy of the export is, in place of the order's URL; "": there
	AWSRegion string // of s3:// URLs that name none; "": the environment's
	Scratch   string // folder for the file that is read; "": the system's

	Endpoint   string // of Bigtable, for tests; "": the service
	S3Endpoint string // of S3, for tests; "": the service
}

// ErrClosed means that the order permits nothing any more. The job has nothing left to do.
var ErrClosed = errors.New("the copy's order is closed")

// errOther is an order that cannot be copied by this build or with these flags.
type errOther struct{ why string }

func (e *errOther) Error() string { return e.why }

// Client opens a client of the instance. now is the clock of the tombstone gate; nil for a client
// that does not write.
func (p *Place) Client(ctx context.Context, tombstones time.Duration, now func() time.Time) (*bigtable.Client, error) {
	return bigtable.Open(ctx, bigtable.Options{
		Project: p.Project, Instance: p.Instance, AppProfile: p.Profile, Endpoint: p.Endpoint, Pipeline: p.Pipeline,
		Tombstones: tombstones, Now: now,
	}, zap.NewNop(), nil)
}

// OpenExport opens the export of an order, and checks that it is that one.
func (p *Place) OpenExport(ctx context.Context, o *delegation.Order) (*export.Export, error) {
	schema, err := schemaOf(o)
	if err != nil {
		return nil, err
	}
	return OpenExport(ctx, cmp.Or(p.Export, o.Export.URL), Wanted{
		Export: o.Export, TableID: o.TableID, Heartbeats: o.Heartbeats, Schema: schema,
		Region: p.AWSRegion, S3Endpoint: p.S3Endpoint, Scratch: p.Scratch,
	})
}

// Wanted is the export that another process has opened and judged, and how to reach it.
type Wanted struct {
	Export     delegation.Export
	TableID    string
	Heartbeats delegation.Heartbeats
	Schema     change.KeySchema

	Region, S3Endpoint, Scratch string // as in Place
}

// OpenExport opens an export, and checks that it is the wanted one. It makes no call to DynamoDB.
func OpenExport(ctx context.Context, url string, w Wanted) (*export.Export, error) {
	var src *source.Source
	if strings.HasPrefix(url, "s3://") {
		var err error
		o := source.Options{Region: w.Region, S3Endpoint: w.S3Endpoint}
		if src, err = source.Open(ctx, o, zap.NewNop(), nil); err != nil {
			return nil, err
		}
	}
	keys := heartbeat.Keys{Prefix: w.Heartbeats.Prefix, List: w.Heartbeats.List}
	e, err := export.Open(ctx, url, export.Want{
		TableID: w.TableID, Source: src, Scratch: w.Scratch,
		Known: &export.Known{Heartbeats: heartbeat.NewFilter(keys, w.Schema.Partition)},
	})
	if err != nil {
		return nil, source.Explain(err)
	}
	if e.Kind != export.Full || len(e.Files) != w.Export.Files || e.Digest() != w.Export.Digest {
		return nil, &errOther{fmt.Sprintf("%s is not the export that was asked for: it has other files", url)}
	}
	return e, nil
}

// schemaOf returns the key of the order's table.
func schemaOf(o *delegation.Order) (change.KeySchema, error) {
	for i := range o.Mappings {
		if o.Mappings[i].Table == o.Table {
			return o.Mappings[i].Schema, nil
		}
	}
	return change.KeySchema{}, &errOther{"the order has no mapping of its table"}
}
