package bench

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// equal reads all tables back, and fails unless each holds what the mapping makes of the source's
// items, and as many rows as it must.
func equal(b *testing.B, l load, sb *sandbox.Sandbox, f *front) {
	b.Helper()
	b.Setenv("AWS_ACCESS_KEY_ID", "a")
	b.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(b.Context(), source.Options{Region: "us-east-1", Endpoint: sb.Endpoint()},
		zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	at := bigtable.Options{Project: "local", Instance: "local", Endpoint: sb.Bigtable.Addr(), Now: time.Now}
	sink, err := bigtable.Open(b.Context(), at,
		zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sink.Close() }()
	items := int64(0)
	for i := range l.tables {
		program := l.compile(b, src, i)
		rows := func(ctx context.Context, each func(*bigtable.Row) error) error {
			if f.null {
				return f.rows(ctx, targetName(i), each)
			}
			return sink.Rows(ctx, targetName(i), "", "", verify.Views(program), each)
		}
		result, err := oracle.Compare(b.Context(), oracle.Options{}, []oracle.Source{{
			Program: program, Schema: program.Table().Schema,
			Items: func(ctx context.Context, each func(change.Image) error) error {
				return scan(ctx, src, sourceName(i), each)
			},
		}}, rows)
		if err != nil {
			b.Fatal(err)
		}
		if !result.Equal() || result.Cells < 3*result.Items {
			b.Fatalf("%s: %d differences, %d cells of %d items compared: %+v",
				sourceName(i), result.Count, result.Cells, result.Items,
				result.Differences[:min(5, len(result.Differences))])
		}
		items += result.Items
	}
	if items != int64(l.items) {
		b.Fatalf("%d items of %d compared", items, l.items)
	}
}

func (l load) compile(b *testing.B, src *source.Source, i int) *transform.Program {
	b.Helper()
	info, err := src.Table(b.Context(), sourceName(i))
	if err != nil {
		b.Fatal(err)
	}
	t := transform.Table{Pipeline: "bench", Source: info.Name, Target: targetName(i), Schema: info.Schema, View: info.View}
	if l.mapping != "" {
		t.Mapping, _ = transform.ParseMapping("mapping.yaml", []byte(l.mapping))
	}
	program, problems := transform.Compile(t)
	if program == nil {
		b.Fatal(problems)
	}
	return program
}

func scan(ctx context.Context, src *source.Source, table string, each func(change.Image) error) error {
	var dec change.Decoder
	for page, err := range src.Scan(ctx, table, 0, 1) {
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			img, err := dec.Image(item)
			if err == nil {
				err = each(img)
			}
			if err != nil {
				return err
			}
			dec.Reset()
		}
	}
	return nil
}
