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

// Probe returns nil if the bucket may be written to and refuses a second object of a name. Without
// that, two processes that take each other for dead could replace each other's objects.
func Probe(ctx context.Context, b Bucket) error {
	for range 2 {
		err := CreateText(ctx, b, layout.Probe, probeText)
		if errors.Is(err, ErrExists) { // also the first time: an earlier start has made it, and the store has just refused it
			return probed(ctx, b)
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

// probed returns nil if the object of a probe is there, with its content.
//
// Rule 15: a refusal alone is no evidence, for a proxy can refuse as well.
func probed(ctx context.Context, b Bucket) error {
	text, err := ReadText(ctx, b, layout.Probe)
	if err != nil {
		return fmt.Errorf("probe the archive: %w", err)
	}
	if string(text) != probeText {
		return &Error{
			Op: "probe the archive", Class: failure.Fatal, Err: fmt.Errorf("%s holds something else", layout.Probe),
			Hint: "move it out of the archive",
		}
	}
	return nil
}

// CreateText is Create from memory: an image without a directory for temporary files can do it too.
func CreateText(ctx context.Context, b Bucket, name, text string) error {
	if s, ok := b.(store); ok {
		content := strings.NewReader(text)
		return wrap(ctx, "create "+name, s.put(ctx, name, io.NewSectionReader(content, 0, content.Size())))
	}
	f, err := os.CreateTemp("", "tailrace-text-")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return b.Create(ctx, name, f, int64(len(text)))
}

// ReadText returns what a small object holds. ErrNotFound: there is none.
func ReadText(ctx context.Context, b Bucket, name string) ([]byte, error) {
	r, err := b.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text := make([]byte, r.Size())
	if _, err := r.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrap(ctx, "read "+name, err)
	}
	return text, nil
}
