package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/control"
)

// Run runs a sandbox until ctx ends: on the default ports unless told otherwise. It
// writes the ready file when all three servers listen, and removes it at the end.
func Run(ctx context.Context, o Options) (err error) {
	o = o.withDefaults()
	var timeline *control.Timeline
	if o.Timeline != "" {
		if timeline, err = control.ReadTimeline(o.Timeline); err != nil {
			return err
		}
	}
	s, err := Start(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if o.ReadyFile != "" {
		if err := writeReady(o.ReadyFile, s.Env()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(o.ReadyFile)) }()
	}
	if o.Ready != nil {
		o.Ready(s.Env())
	}
	if timeline != nil {
		if err := timeline.Run(ctx, s.Console); err != nil && ctx.Err() == nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func (o Options) withDefaults() Options {
	o.DynamoDB = cmp.Or(o.DynamoDB, DefaultDynamoDB)
	o.Bigtable = cmp.Or(o.Bigtable, DefaultBigtable)
	o.NATS = cmp.Or(o.NATS, DefaultNATS)
	return o
}

// writeReady writes the file at once, whole.
func writeReady(path string, env []string) error {
	text := "export " + strings.Join(env, "\nexport ") + "\n"
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

// Env returns the environment, as KEY=value, that makes the usual clients use a sandbox
// on these addresses; empty ones are Run's defaults. The credentials are dummies: the
// sandbox looks at a signature's form only.
func Env(o Options) []string {
	o = o.withDefaults()
	url := "http://" + o.DynamoDB
	if !strings.Contains(o.NATS, "://") {
		o.NATS = "nats://" + o.NATS
	}
	return []string{
		"AWS_ENDPOINT_URL=" + url,
		"AWS_ENDPOINT_URL_DYNAMODB=" + url,
		"AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + url,
		"AWS_REGION=" + Region,
		"AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=sandbox",
		"AWS_SECRET_ACCESS_KEY=sandbox",
		"BIGTABLE_EMULATOR_HOST=" + o.Bigtable,
		"NATS_URL=" + o.NATS,
	}
}
