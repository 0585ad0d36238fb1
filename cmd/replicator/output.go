package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify/extsort"
)

// outputFile is a file that a command writes. It is made beside its path, readable by its owner
// alone, and gets its name when it is complete: an earlier file of that name keeps its content
// until then, and does not lend it its mode.
type outputFile struct {
	what, flag string // in messages
	path       string
	file       *os.File // nil for stdout
	to         io.Writer
	direct     bool  // path is stdout, a device or a pipe, which cannot be replaced
	written    int64 // bytes
}

// openOutput begins a file: a directory that takes none is named before anything is compared. The
// path - is stdout; what the command prints for people goes to stderr then.
func openOutput(a *cli.App, path, what, flag string) (*outputFile, error) {
	o := &outputFile{what: what, flag: flag, path: path}
	if path == "-" {
		if a.JSON {
			return nil, failure.Usagef("a file, or without --json", "%s - and --json both write to stdout", flag)
		}
		if a.Out == a.Errs {
			return nil, failure.Usagef("a file for one of them", "%s - is not the only output to stdout", flag)
		}
		o.direct, o.to, a.Out = true, a.Out, a.Errs
		return o, nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		o.path = real // a link stays one
	}
	info, err := os.Stat(o.path)
	if o.direct = err == nil && !info.Mode().IsRegular(); o.direct {
		o.file, err = os.OpenFile(o.path, os.O_WRONLY, 0)
	} else {
		o.file, err = os.CreateTemp(filepath.Dir(o.path), ".replicator-*"+filepath.Ext(o.path)) // mode 0600
	}
	if err != nil {
		return nil, o.because("make", err)
	}
	o.to = o.file
	return o, nil
}

// Write implements io.Writer. Its errors end a command.
func (o *outputFile) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if o.written += int64(n); err != nil {
		return n, o.because("write", err)
	}
	return n, nil
}

// finish gives the file its name.
func (o *outputFile) finish(mode os.FileMode) error {
	if o.direct {
		return nil
	}
	err := errors.Join(o.file.Chmod(mode), o.file.Sync(), o.file.Close()) // some volumes say late that they are full
	if err == nil {
		err = os.Rename(o.file.Name(), o.path)
	}
	if err != nil {
		return o.because("write", err)
	}
	return nil
}

// close removes a file that is not complete.
func (o *outputFile) close() {
	if o.file == nil {
		return
	}
	_ = o.file.Close()
	if !o.direct {
		_ = os.Remove(o.file.Name()) // it is gone when it has its name
	}
}

func (o *outputFile) because(verb string, err error) error {
	done := ""
	if o.written > 0 {
		done = " after " + humanize.IBytes(uint64(o.written))
	}
	err = extsort.NoRoom(filepath.Dir(o.path), err)
	return failure.With(failure.Unready,
		"make room, or name another file with "+o.flag+"; then the same command again",
		fmt.Errorf("%s %s %s%s: %w", verb, o.what, o.path, done, err))
}
