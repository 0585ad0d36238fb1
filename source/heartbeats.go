package source

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Heartbeats returns the filter that separates the heartbeats of a table from its items; nil for a
// table without heartbeats. It describes the table if that was not done yet.
func (s *Source) Heartbeats(ctx context.Context, table string) (*heartbeat.Filter, error) {
	keys := s.heartbeatKeys(table)
	if keys.None() {
		return nil, nil
	}
	schema, err := s.schema(ctx, table)
	if err != nil {
		return nil, err
	}
	return heartbeat.NewFilter(keys, schema.Partition), nil
}

// schema returns the key of a table. It describes the table if nothing has yet.
func (s *Source) schema(ctx context.Context, table string) (change.KeySchema, error) {
	s.mu.Lock()
	schema, ok := s.schemas[table]
	s.mu.Unlock()
	if ok {
		return schema, nil
	}
	info, err := s.Table(ctx, table)
	return info.Schema, err
}

// UseHeartbeats sets the keys of the heartbeats of a table, before anything of it is read: see
// Options.Heartbeats.
func (s *Source) UseHeartbeats(table string, keys heartbeat.Keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heartbeats[table] = keys
}

func (s *Source) heartbeatKeys(table string) heartbeat.Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heartbeats[table]
}

// noteSchema remembers the key of a described table.
func (s *Source) noteSchema(table string, schema change.KeySchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schemas[table] = schema
}

// ErrNotHeartbeat means that another item has the key of a heartbeat, and was left as it is.
var ErrNotHeartbeat = errors.New("an item that is not a heartbeat has its key")

// WriteHeartbeat writes the heartbeat with a partition key, as heartbeat.Keys.Nth gives it. It does
// not retry: another one follows.
func (s *Source) WriteHeartbeat(ctx context.Context, table *TableInfo, key string) error {
	return s.putHeartbeat(ctx, table, key, false)
}

// MayWriteHeartbeats checks the permission to write heartbeats, by a write with a condition that is
// never true.
func (s *Source) MayWriteHeartbeats(ctx context.Context, table *TableInfo, key string) error {
	err := s.putHeartbeat(ctx, table, key, true)
	if errors.Is(err, ErrNotHeartbeat) || Classify(err) == failure.Throttled {
		return nil
	}
	return err
}

func (s *Source) putHeartbeat(ctx context.Context, table *TableInfo, key string, never bool) error {
	op := "write heartbeat to " + table.Name
	in, err := heartbeat.Put(s.Address(table.Name), table.Schema, key, s.nowOrLocal(), never)
	if err != nil {
		return &Error{Op: op, Class: failure.Fatal, Err: err}
	}
	call, cancel := context.WithTimeout(ctx, s.opt.CallTimeout)
	defer cancel()
	start := time.Now()
	_, err = s.tables.PutItem(call, in, func(o *dynamodb.Options) { o.Retryer = s.noRetry })
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		s.metrics.callEnded(ctx, "PutItem", start, nil) // the service has answered
		return ErrNotHeartbeat
	}
	s.metrics.callEnded(ctx, "PutItem", start, err)
	if err != nil {
		return s.wrap(ctx, op, err)
	}
	return nil
}
