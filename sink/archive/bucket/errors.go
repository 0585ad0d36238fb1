package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
)

// Error is a failed call to a store.
type Error struct {
	Op    string // what was tried, as "verb noun"
	Class failure.Class
	Hint  string // what an operator can do, or ""
	Err   error
}

func (e *Error) Error() string {
	if e.Op == "" {
		return e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Classify returns what can be done about an error of this package. A full disk or a bucket that
// lacks something is Fatal, Denied or Missing: the same call succeeds once an operator has acted,
// so the caller goes on trying, rarely.
func Classify(err error) failure.Class {
	var own *Error
	switch {
	case err == nil:
		return failure.None
	case errors.As(err, &own):
		return own.Class
	case errors.Is(err, context.Canceled):
		return failure.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Transient
	}
	return failure.Fatal
}

// Hint returns what an operator can do about an error, or "".
func Hint(err error) string {
	var own *Error
	if errors.As(err, &own) {
		return own.Hint
	}
	return ""
}

// refused returns an error with a class and what to do. wrap adds what was tried.
func refused(class failure.Class, hint, format string, args ...any) error {
	return &Error{Class: class, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// wrap returns an error with what was tried. Once ctx has ended, the class is Canceled, whatever
// err is.
func wrap(ctx context.Context, op string, err error) error {
	var own *Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrExists):
		return &Error{Op: op, Class: failure.Rejected, Err: err}
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Error{Op: op, Class: failure.Transient, Err: err}
	case ctx.Err() != nil:
		return &Error{Op: op, Class: failure.Canceled, Err: context.Cause(ctx)}
	case errors.Is(err, ErrNotFound):
		return &Error{Op: op, Class: failure.Missing, Err: err}
	case errors.As(err, &own):
		return &Error{Op: op, Class: own.Class, Hint: own.Hint, Err: err}
	}
	class, hint := classOfFile(err)
	return &Error{Op: op, Class: class, Hint: hint, Err: err}
}

// classOfFile returns class and hint of an error of the file system.
func classOfFile(err error) (failure.Class, string) {
	for _, k := range []struct {
		errno error
		class failure.Class
		hint  string
	}{
		{host.ErrNoSpace, failure.Fatal, "make room on the disk of the archive"},
		{host.ErrQuota, failure.Fatal, "raise the quota of the archive's disk, or make room"},
		{host.ErrFileTooLarge, failure.Fatal,
			"the file system or a limit of the process (ulimit -f) allows no file of this size"},
		{host.ErrReadOnly, failure.Denied,
			"the archive's file system is mounted read-only: after errors of the disk, see dmesg"},
		{fs.ErrPermission, failure.Denied, "give the replicator's user the right to write into the archive's directory"},
		{host.ErrIO, failure.Fatal, "the disk of the archive reports errors: see dmesg"},
		{host.ErrNotDirectory, failure.Rejected, "a file stands where the archive needs a directory: move it away"},
		{host.ErrNameTooLong, failure.Rejected, ""},
		{fs.ErrNotExist, failure.Missing, "the archive's directory is gone: mount it, or move it back"},
	} {
		if errors.Is(err, k.errno) {
			return k.class, k.hint
		}
	}
	return failure.Transient, ""
}
