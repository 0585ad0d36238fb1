package bucket

import (
	"context"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
)

// checkName refuses names that are not the same path in every store: the Go CDK reads these by
// another name than the one that they are written by.
func checkName(name string) error {
	escaped := strings.ContainsAny(name, "\\\"#%?\x7f") || strings.Contains(name, "__0x") ||
		strings.Contains(name, "../") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
	if !fs.ValidPath(name) || name == "." || escaped {
		return refused(failure.Rejected, "", "%q is no name of an object", name)
	}
	return nil
}

// section returns the bytes to store, and refuses a file that is shorter.
func section(f *os.File, size int64) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < size {
		return nil, refused(failure.Fatal, "", "%s has %d bytes, not %d", f.Name(), info.Size(), size)
	}
	return io.NewSectionReader(f, 0, size), nil
}

// store is what both implementations have beside Bucket.
type store interface {
	// put is Create from memory or a file.
	put(ctx context.Context, name string, content *io.SectionReader) error
}

// create is Create of both implementations.
func create(ctx context.Context, s store, name string, f *os.File, size int64) error {
	op := "create " + name
	if err := checkName(name); err != nil {
		return wrap(ctx, op, err)
	}
	content, err := section(f, size)
	if err != nil {
		return wrap(ctx, op, err)
	}
	return wrap(ctx, op, s.put(ctx, name, content))
}
