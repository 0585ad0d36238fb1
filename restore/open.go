package restore

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// Open opens the store of the configuration's archive, to be read only.
func Open(ctx context.Context, cfg *config.Config) (bucket.Bucket, error) {
	if cfg.Archive.URL == "" {
		return nil, failure.Usagef("archive: {url: s3://BUCKET/PREFIX}", "the configuration has no archive of objects")
	}
	o := clients.BucketOptions(cfg)
	o.ReadOnly = true
	b, err := bucket.Open(ctx, cfg.Archive.URL, o)
	if err != nil {
		return nil, Failed(err)
	}
	return b, nil
}

// Tables returns the tables of the configuration that have an archive, or the named one. That may
// be one which is not replicated any more: archives outlive it.
func Tables(ctx context.Context, b bucket.Bucket, cfg *config.Config, name string) (names []string, err error) {
	selected, err := catalog.Select(cfg, name)
	if err != nil {
		if has, failed := hasArchive(ctx, b, name); has || failed != nil {
			return []string{name}, failed
		}
		return nil, err
	}
	for i := range selected {
		t := &selected[i]
		has := name != "" || t.OnTTLExpiry == "archive"
		if !has { // a rule of its mapping may archive
			if has, err = hasArchive(ctx, b, t.Source); err != nil {
				return nil, err
			}
		}
		if has {
			names = append(names, t.Source)
		}
	}
	return names, nil
}

// hasArchive reports whether the store holds anything of a table.
func hasArchive(ctx context.Context, b bucket.Bucket, table string) (bool, error) {
	for _, prefix := range []string{layout.Manifests(table), layout.Table(table)} {
		for _, err := range b.List(ctx, prefix) {
			return true, Failed(err)
		}
	}
	return false, nil
}

// Failed gives an error of the store its exit code and hint.
func Failed(err error) error {
	var newer *manifest.NewerFormatError
	var newerObject *object.NewerVersionError
	switch {
	case err == nil || failure.Known(err) || errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &newer) || errors.As(err, &newerObject):
		return failure.With(failure.None, "run the command of the replicator that wrote it", err)
	case bucket.Classify(err) == failure.Rejected:
		return failure.With(failure.Usage, bucket.Hint(err), err)
	}
	hint := bucket.Hint(err)
	switch bucket.Classify(err) {
	case failure.Transient, failure.Throttled:
		hint = cmp.Or(hint, "is the store of archive.url up, and can it be reached from here? Then repeat the command")
	}
	return failure.With(failure.Unready, hint, err)
}

// Head returns the end of the chain of manifests as the archive's stream of a table has it, or its
// log, where there is no such stream any more; nil where neither does.
func Head(ctx context.Context, q *queue.Queue, table string) (*manifest.Head, error) {
	log, err := q.Log(ctx, table)
	if errors.Is(err, queue.ErrNoLog) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j, err := log.ExistingArchive(ctx)
	if err != nil {
		return nil, err
	}
	if j == nil {
		return loggedHead(ctx, log)
	}
	s, err := archiving.Fold(ctx, j)
	if err != nil {
		return nil, err
	}
	return &s.Head, nil
}

// loggedHead returns the end of the chain that a table's log stores; nil when it stores none.
func loggedHead(ctx context.Context, log *queue.Log) (*manifest.Head, error) {
	s, err := log.Fold(ctx)
	if err != nil || s.Expired.Head == nil || s.Expired.Head.N == 0 {
		return nil, err
	}
	return &manifest.Head{N: s.Expired.Head.N, Hash: s.Expired.Head.Hash}, nil
}

// readContent reads an object for manifest.Verify.
func readContent(_ context.Context, r io.ReaderAt, size int64, all bool) (*manifest.Content, error) {
	foot, err := object.ReadFooter(r, size)
	if err == nil && all {
		var wrong []string
		if foot, wrong, err = object.Verify(r, size); err == nil && len(wrong) > 0 {
			err = errors.New(wrong[0])
		}
	}
	if err != nil {
		return nil, err
	}
	return &manifest.Content{Part: foot.Part, Coverage: foot.Coverage, Events: foot.Events, Digest: foot.Digest}, nil
}
