package audit

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

// request has DynamoDB export all tables of the target. The same request returns the same export
// for eight hours.
func (w *byWorkers) request(ctx context.Context) error {
	if len(w.job.Exports) == len(w.pair.Tables) {
		return nil
	}
	to := w.o.Workers.Exports
	if to == "" {
		to = w.o.Workers.Folder
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return failure.Usagef("--exports s3://bucket/prefix", "DynamoDB exports to S3, and --workers names no bucket of it")
	}
	if err := w.awaitBegin(ctx); err != nil {
		return err
	}
	w.job.Exports = nil
	for i, t := range w.pair.Tables {
		arn, err := w.pair.Source().StartExport(ctx, source.ExportRequest{
			TableARN: t.Info.ARN, Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), ClientToken: fmt.Sprint(w.job.ID, "-", i),
		})
		if err != nil {
			return source.Explain(fmt.Errorf("export %s for the comparison: %w", t.Source, err))
		}
		w.job.Exports = append(w.job.Exports, arn)
	}
	return w.note()
}

// awaitBegin waits until an export that is requested shows what was written before the record began:
// an export shows the state at the begin of a second.
func (w *byWorkers) awaitBegin(ctx context.Context) error {
	for {
		left := w.earliest() + protocol.DateStep - w.pair.Now()
		if left <= 0 {
			return nil
		}
		if err := failure.Pause(ctx, min(time.Duration(left)*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

// earliest returns the first moment that an export may show. A change before it that Bigtable lost
// would be in no export, and before the positions of the logs from which changes are compared again.
func (w *byWorkers) earliest() change.Millis {
	return change.MillisOf(w.recorder.result.Began) + protocol.DateStep // both by the service's clock
}

// exported waits until the exports are complete, and returns a plan of them.
func (w *byWorkers) exported(ctx context.Context) (*distributed.Plan, error) {
	sink := w.pair.Sink()
	p := &distributed.Plan{
		ID: w.job.ID, Pipeline: w.recorder.result.Pipeline, Project: sink.Project(), Instance: sink.Instance(),
		Target: w.pair.Target, Profile: sink.CopyProfileName(),
	}
	w.say("DynamoDB exports " + strings.Join(w.wanted, ", ") + ": that takes minutes, and for large tables hours")
	for i, t := range w.pair.Tables {
		e, err := w.awaitExport(ctx, w.job.Exports[i], t.Info.ID)
		if class := source.Classify(err); class == failure.Rejected || class == failure.Missing || class == failure.Fatal {
			_ = forgetJob(w.dir) // the next one has other exports
		}
		if err != nil {
			return nil, source.Explain(fmt.Errorf("export of %s: %w", t.Source, err))
		}
		if err := w.fits(e, t.Source); err != nil {
			_ = forgetJob(w.dir) // the next one has other exports
			return nil, failure.With(failure.Unready, "start it again: it requests another export", err)
		}
		m, err := delegation.MappingOf(t.Program)
		if err != nil {
			return nil, err
		}
		p.Tables = append(p.Tables, distributed.Table{
			Mapping: m, TableID: t.Info.ID,
			Export: delegation.Export{
				URL: e.URL, Digest: e.Digest(), Files: len(e.Files), Time: e.Time, Items: e.Items, Bytes: e.Bytes,
			},
			Heartbeats: delegation.Heartbeats{Prefix: t.Heartbeat.Prefix, List: t.Heartbeat.Keys},
		})
	}
	return p, nil
}

// fits returns why an export shows too little to be compared.
//
// What a filter has left out would be on neither side, where the copy was of a filtered export.
func (w *byWorkers) fits(e *export.Export, table string) error {
	switch {
	case e.Wholeness != export.Whole:
		return fmt.Errorf("the export of %s may lack items: %s", table, e.Unasked)
	case e.Time < w.earliest():
		return fmt.Errorf("the export of %s shows %s, before the comparison began", table,
			e.Time.Time().UTC().Format(time.RFC3339))
	}
	return nil
}

// awaitExport waits until an export is complete, and opens it.
func (w *byWorkers) awaitExport(ctx context.Context, arn, table string) (*export.Export, error) {
	for n := 0; ; n++ {
		st, err := w.pair.Source().ExportStatus(ctx, arn)
		switch {
		case source.Classify(err) == failure.Transient && n < 20:
		case err != nil:
			return nil, err
		case st.Failure() != nil:
			return nil, st.Failure()
		case st.Status == source.ExportCompleted:
			return export.Open(ctx, st.URL, export.Want{TableID: table, Source: w.pair.Source(), Scratch: w.dir})
		default:
			n = 0
		}
		if err := failure.Pause(ctx, w.poll); err != nil {
			return nil, err
		}
	}
}
