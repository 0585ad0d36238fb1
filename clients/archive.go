package clients

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// Archive returns where archival events go, or nil if the configuration has no archive. A subject
// uses the connection of Queue, which must be open.
func (c *Clients) Archive(ctx context.Context) (*archiving.Place, error) {
	cfg := &c.cfg.Archive
	if !cfg.Enabled() {
		return nil, nil
	}
	p := &archiving.Place{
		Once: new(archiving.Once), Scratch: c.cfg.Scratch, Letters: cfg.OnStall == "letter",
	}
	if cfg.URL != "" {
		b, err := c.Bucket(ctx, BucketOptions(c.cfg))
		if err != nil {
			return nil, err
		}
		p.Objects, p.URL = b, bucket.Place(cfg.URL)
	}
	if cfg.Subject != "" {
		at := archive.Options{Subject: cfg.Subject, Conn: c.queue.Conn(), Domain: c.cfg.Queue.Domain}
		s, err := archive.OpenSubject(ctx, at, c.logger(zapcore.WarnLevel).Named("archive"))
		if err != nil {
			return nil, failure.With(failure.Unready,
				"see whether the NATS server answers, and whether this user may publish to "+cfg.Subject,
				fmt.Errorf("open archive.subject: %w", err))
		}
		p.Subject = s
	}
	return p, nil
}

// BucketOptions returns how the archive's bucket is opened. A bucket of S3 is taken to be in the
// region of the tables, but not to belong to their account, which source.assume_role is for: the
// URL may name a role of its own.
func BucketOptions(cfg *config.Config) bucket.Options {
	return bucket.Options{Region: cfg.Source.Region}
}

// Bucket returns where the archive's objects are.
func (c *Clients) Bucket(ctx context.Context, o bucket.Options) (bucket.Bucket, error) {
	if c.bucket != nil {
		return c.bucket, nil
	}
	b, err := bucket.Open(ctx, c.cfg.Archive.URL, o)
	if err != nil {
		return nil, failure.With(failure.Unready, bucket.Hint(err), err)
	}
	c.bucket = b
	return b, nil
}

// ObjectForm returns the form of the objects of a table.
func ObjectForm(cfg *config.Config, t *config.Table) object.Options {
	o := object.Options{Format: object.Format(cfg.Archive.Format), Pipeline: cfg.Pipeline}
	columns := cfg.ArchiveOf(t).Columns
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		col := columns[name]
		path := col.Path
		if path == "" {
			path = name
		}
		o.Columns = append(o.Columns, object.Column{Name: name, Path: object.ParsePath(path), Type: object.Type(col.Type)})
	}
	return o
}

// TableArchive returns what of a table is archived, and how.
func TableArchive(cfg *config.Config, t *config.Table) pipeline.Archive {
	own := cfg.ArchiveOf(t)
	return pipeline.Archive{
		On: cfg.Archive.Enabled(), Form: ObjectForm(cfg, t), Roll: time.Duration(own.Roll),
		Classes: apply.Classes{
			User: slices.Contains(own.Classes, "user"), Inferred: slices.Contains(own.Classes, "inferred"),
		},
	}
}
