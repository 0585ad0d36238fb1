package ingest

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// checkStream checks whether the table has a new stream: then the old one takes no more writes, and
// what was written between the two is lost.
func (l *lister) checkStream(ctx context.Context) error {
	v := l.current()
	table, shown := l.describeTable(ctx, v.stream)
	l.countGone(&table, shown)
	step := protocol.NextStream(shown.Shows, v.disabled, v.applied)
	if table.err != nil || v.stream == "" || step == protocol.StreamStays {
		return table.err
	}
	if info := table.info; info.ID != "" && l.o.Info.ID != "" && info.ID != l.o.Info.ID {
		if _, old, err := l.describeStream(ctx, v.stream); !protocol.StreamEnded(shown, old) {
			return err // another answer shows that the stream of the old table takes records
		}
		return &outcome.HaltError{Code: "table_recreated",
			Reason: "the table was deleted and created again: its items are not the ones that were copied"}
	}
	switch step {
	case protocol.StreamRetires:
		return l.retireStream(ctx, v, shown)
	case protocol.StreamFollows:
		return l.startStream(ctx, table.info.StreamARN, v)
	}
	return nil
}

// countGone reports how often in a row DynamoDB has denied that it has the table.
//
// Rule 13: one such answer means nothing, and nothing is stored because of several: the stream of a
// deleted table is read to its end.
func (l *lister) countGone(table *tableAnswer, shown protocol.StreamAnswer) {
	switch {
	case table.err == nil:
		l.denied = 0
	case shown.Shows == protocol.StreamUnknown:
		l.denied++
	default:
		return // no answer
	}
	if l.o.TableGone != nil {
		l.o.TableGone(l.denied)
	}
}

// retireStream stores that the old stream is disabled, if its own description shows it; the shards
// that it still has are read to their end. replaced is what the table's description has shown.
func (l *lister) retireStream(ctx context.Context, v streamSummary, replaced protocol.StreamAnswer) error {
	ls, shown, err := l.describeStream(ctx, v.stream)
	if !protocol.StreamEnded(replaced, shown) {
		return err
	}
	g := graphOf(ls)
	g.Stream, g.Disabled, g.Complete = v.stream, true, false
	if g.Date == 0 {
		g.Date = l.o.now()
	}
	if shown.Shows == protocol.StreamUnknown { // each reader reports that of its shard, behind what it has read
		g.Gone = l.current().gapped
	}
	return l.handoff.request(ctx, g)
}

// startStream starts the new stream inside the same life: a gap, then its shards from their trim
// horizons, with versions above all earlier ones (Rule 5).
func (l *lister) startStream(ctx context.Context, arn string, old streamSummary) error {
	ls, err := l.o.Source.List(ctx, arn)
	if err != nil || !ls.Complete || len(ls.Shards) == 0 {
		return errors.Join(err, outcome.ErrNotListed)
	}
	l.o.Logger.Error("the table's stream was disabled and enabled again: changes in between are lost",
		zap.String("old", old.stream), zap.String("new", arn))
	// Each step may be repeated: the row, the gap, and the start, which ends it.
	if err := l.o.Row.Adopt(ctx, arn); err != nil {
		return err
	}
	gap, start := protocol.NextStart(old.stream, arn, old.readWatermark, ls.Started, old.highestVersion)
	if err := l.handoff.request(ctx, gap); err != nil {
		return err
	}
	start.Shards = ListedShards(ls.Shards)
	return l.handoff.request(ctx, start)
}

// describeStream lists a stream, and returns what the answer shows about it.
func (l *lister) describeStream(ctx context.Context, arn string) (source.Listing, protocol.StreamAnswer, error) {
	shown := protocol.StreamAnswer{By: protocol.DescribesStream, Asked: time.Now()}
	ls, err := l.o.Source.List(ctx, arn)
	shown.Answered = time.Now()
	switch {
	case err != nil && source.Classify(err) == failure.Gone:
		shown.Shows = protocol.StreamUnknown
	case err != nil:
	case ls.Disabled():
		shown.Shows = protocol.StreamOff
	case ls.Enabled():
		shown.Shows = protocol.StreamTakes
	}
	return ls, shown, err
}

// describeTable describes the table, and returns what the answer shows about a stream.
func (l *lister) describeTable(ctx context.Context, stream string) (tableAnswer, protocol.StreamAnswer) {
	shown := protocol.StreamAnswer{By: protocol.DescribesTable, Asked: time.Now()}
	info, err := l.o.Source.Table(ctx, l.o.Info.Name)
	shown.Answered = time.Now()
	switch {
	case source.Classify(err) == failure.Gone:
		shown.Shows = protocol.StreamUnknown
	case err != nil:
	case info.StreamARN != "" && info.StreamARN != stream:
		shown.Shows = protocol.StreamReplaced
	case info.StreamARN == stream && info.Streaming:
		shown.Shows = protocol.StreamTakes
	case info.StreamARN == stream:
		shown.Shows = protocol.StreamOff
	}
	return tableAnswer{info, err}, shown
}

// tableAnswer is an answer of DescribeTable.
type tableAnswer struct {
	info source.TableInfo
	err  error
}

func graphOf(ls source.Listing) *checkpoint.Graph {
	return &checkpoint.Graph{
		Stream: ls.Stream, Date: ls.Started, Complete: ls.Complete, Disabled: ls.Disabled(), Shards: ListedShards(ls.Shards),
	}
}

// ListedShards returns the shards of a listing as the log stores them.
func ListedShards(shards []source.Shard) (seen []checkpoint.ShardSeen) {
	for _, sh := range shards {
		seen = append(seen, checkpoint.ShardSeen{ID: sh.ID, Parent: sh.Parent, Closed: sh.Closed})
	}
	return seen
}
