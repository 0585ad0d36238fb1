package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/control"
)

// Run runs a sandbox until ctx ends, by default on the default ports. It writes the ready file when
// all servers listen, and removes it at the end.
func Run(ctx context.Context, o Options) (err error) {
	o = o.withDefaultPorts()
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

// writeReady writes the ready file atomically.
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
