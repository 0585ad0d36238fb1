package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

const probeText = "Tailrace wrote this to see that the store refuses a name that is taken. It may be deleted.\n"

// Probe returns nil if the bucket may be written to and refuses a second object of a name. Without that, two processes
// that take each other for dead could replace each other's objects.
func Probe(ctx context.Context, b Bucket) error {
	for range 2 {
		err := createProbe(ctx, b)
		if errors.Is(err, ErrExists) {
			return nil // also the first time: an earlier start has made it, and the store has just refused it
		}
		if err != nil {
			return fmt.Errorf("probe the archive: %w", err)
		}
	}
	return &Error{
		Op: "probe the archive", Class: failure.Fatal, Err: fmt.Errorf("%s was created twice", layout.Probe),
		Hint: "the store ignores conditions of writes (If-None-Match): update it, or take another one; else objects " +
			"could be replaced",
	}
}

// createProbe creates the object from memory where the store can: an image without a directory for temporary files
// starts too.
func createProbe(ctx context.Context, b Bucket) error {
	if s, ok := b.(store); ok {
		content := strings.NewReader(probeText)
		return wrap(ctx, "create "+layout.Probe, s.put(ctx, layout.Probe, io.NewSectionReader(content, 0, content.Size())))
	}
	f, err := os.CreateTemp("", "tailrace-probe-")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := f.WriteString(probeText); err != nil {
		return err
	}
	return b.Create(ctx, layout.Probe, f, int64(len(probeText)))
}
